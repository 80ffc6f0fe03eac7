// Node is what a machine of a cluster runs, for tests: a container runtime that only pretends, a real kubelet, and a
// real DRA driver and a device plugin whose answers a file decides. One process each: the first argument says which.
//
// Each ends when its standard input closes, so nothing outlives whoever started it.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/component-base/cli"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

// parts are the programs this binary can be. Each reads its arguments from os.Args.
var parts = map[string]func(ctx context.Context) error{
	"runtime": runRuntime,
	"driver":  runDriver,
	"plugin":  runPlugin,
	"kubelet": func(ctx context.Context) error {
		os.Exit(cli.Run(kubelet.NewKubeletCommand(ctx)))
		return nil
	},
}

func main() {
	if len(os.Args) < 2 || parts[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: node runtime|kubelet|driver|plugin FLAGS")
		os.Exit(2)
	}
	run := parts[os.Args[1]]
	os.Args = os.Args[1:]
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(1)
	}()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "node:", err)
		os.Exit(1)
	}
}
