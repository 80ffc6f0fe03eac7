package main

import (
	"io"
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
)

// components are the programs this binary can be, by the name of their sub-command.
// Each reads its arguments from os.Args, as the released program does.
var components = map[string]func() int{
	"etcd":                    func() int { etcdmain.Main(os.Args); return 0 },
	"kube-apiserver":          func() int { return cli.Run(apiserver.NewAPIServerCommand()) },
	"kube-scheduler":          func() int { return cli.Run(scheduler.NewSchedulerCommand()) },
	"kube-controller-manager": func() int { return cli.Run(controllermanager.NewControllerManagerCommand()) },
}

// followParentVariable says that standard input is a pipe held open by the parent for as long as it lives.
const followParentVariable = "CONTROLPLANE_FOLLOW_PARENT"

// runComponent becomes a component; it does not return.
func runComponent(arguments []string, run func() int) {
	os.Args = arguments
	if os.Getenv(followParentVariable) != "" {
		// Nothing may outlive a supervisor that was killed.
		go func() {
			_, _ = io.Copy(io.Discard, os.Stdin)
			os.Exit(1)
		}()
	}
	os.Exit(run())
}
