// Controlplane starts a real Kubernetes control plane on loopback, for tests.
//
// It runs etcd, kube-apiserver, kube-scheduler and kube-controller-manager as children: the same binary, called
// again with a component's name as its first argument. One process per component, because each keeps its feature
// gates and metrics in global variables.
//
// When all of them are ready the path of a kubeconfig (contexts "admin" and "restricted") is printed on one line of
// standard output. The control plane ends, with everything it wrote, when standard input closes or on SIGINT, SIGTERM
// or SIGHUP. After a SIGKILL its components end by themselves, and what they wrote is removed by the next start.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	if len(os.Args) > 1 {
		if run, ok := components[os.Args[1]]; ok {
			runComponent(os.Args[1:], run)
		}
	}
	if err := supervise(); err != nil {
		fmt.Fprintln(os.Stderr, "controlplane:", err)
		os.Exit(1)
	}
}

// supervise starts a control plane and returns after it has ended: nil when it was asked to end.
func supervise() error {
	profileName := flag.String("profile", "full", "full: all versions of resource.k8s.io and DeviceTaintRules; "+
		"defaults: what Kubernetes serves by default")
	gates := flag.String("feature-gates", "", "more feature gates for every component, `A=true,B=false`; they win over the profile's")
	runtimeConfig := flag.String("runtime-config", "", "more API versions for kube-apiserver, `group/version=true,...`")
	flag.Parse()
	if flag.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", flag.Arg(0))
	}
	settings, err := newSettings(*profileName, *gates, *runtimeConfig)
	if err != nil {
		return err
	}

	end := make(chan struct{}, 2)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	go func() { <-signals; end <- struct{}{} }()
	go func() { _, _ = io.Copy(io.Discard, os.Stdin); end <- struct{}{} }()

	return run(settings, end)
}
