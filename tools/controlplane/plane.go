package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"

	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
)

// controllers are the loops of kube-controller-manager that DRA tests need, where the version has them. Left out on
// purpose: the node lifecycle (nodes have no kubelet and must stay Ready), pod garbage collection and everything about
// volumes, network, certificates and service accounts.
var controllers = []string{
	"cronjob-controller",
	"daemonset-controller",
	"deployment-controller",
	"device-taint-eviction-controller",
	"garbage-collector-controller",
	"job-controller",
	"namespace-controller",
	"replicaset-controller",
	"replicationcontroller-controller",
	"resourceclaim-controller",
	"resourcepoolstatusrequest-controller",
	"resourcequota-controller",
	"statefulset-controller",
}

// startAttempts is more than one because a free port can be taken before a component listens on it.
const startAttempts = 3

// run starts a control plane, prints the path of its kubeconfig and keeps it until end or until a component ends.
func run(chosen settings, end <-chan struct{}) error {
	for attempt := 1; ; attempt++ {
		err := runOnce(chosen, end)
		if err == nil || attempt == startAttempts || !strings.Contains(err.Error(), "address already in use") {
			return err
		}
	}
}

func runOnce(chosen settings, end <-chan struct{}) (err error) {
	files, err := newScratch()
	if err != nil {
		return err
	}
	plane := &plane{files: files, settings: chosen, exits: make(chan *process, len(components))}
	defer func() {
		if cleaning := plane.stop(); err == nil {
			err = cleaning
		}
	}()

	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	started := make(chan error, 1)
	go func() { started <- plane.start(ctx) }()
	select {
	case err := <-started:
		if err != nil {
			return err
		}
	case <-end:
		cancel()
		<-started
		return nil
	}

	fmt.Println(plane.kubeconfig)
	select {
	case <-end:
		return nil
	case ended := <-plane.exits:
		return ended.failure("ended unexpectedly")
	}
}

// plane is a control plane whose files are all in one directory.
type plane struct {
	files      *scratch
	settings   settings
	kubeconfig string
	processes  []*process
	exits      chan *process
	identities *credentials
}

// start returns when every component is ready.
func (p *plane) start(ctx context.Context) error {
	ports, err := freePorts(5)
	if err != nil {
		return err
	}
	etcdURL := "http://" + ports[0]
	peerURL := "http://" + ports[1]
	server := "https://" + ports[2]

	if p.identities, err = newCredentials(p.files.directory); err != nil {
		return err
	}
	if p.kubeconfig, err = p.identities.writeKubeconfig("kubeconfig", server, "admin", "restricted"); err != nil {
		return err
	}
	schedulerConfig, err := p.identities.writeKubeconfig("scheduler.kubeconfig", server, "scheduler")
	if err != nil {
		return err
	}
	controllersConfig, err := p.identities.writeKubeconfig("controllers.kubeconfig", server, "controllers")
	if err != nil {
		return err
	}

	etcd, err := p.launch("etcd", etcdArguments(p.files.directory, etcdURL, peerURL))
	if err != nil {
		return err
	}
	if err := etcd.waitReady(ctx, etcdURL+"/readyz", nil, p.exits); err != nil {
		return err
	}

	apiserver, err := p.launch("kube-apiserver", p.apiserverArguments(etcdURL, ports[2]))
	if err != nil {
		return err
	}
	if err := apiserver.waitReady(ctx, server+"/readyz", p.identities.authority, p.exits); err != nil {
		return err
	}

	scheduler, err := p.launch("kube-scheduler", p.loopArguments(schedulerConfig, ports[3]))
	if err != nil {
		return err
	}
	manager, err := p.launch("kube-controller-manager",
		append(p.loopArguments(controllersConfig, ports[4]), "--controllers="+strings.Join(knownControllers(), ",")))
	if err != nil {
		return err
	}
	if err := scheduler.waitReady(ctx, "https://"+ports[3]+"/readyz", p.identities.authority, p.exits); err != nil {
		return err
	}
	return manager.waitReady(ctx, "https://"+ports[4]+"/healthz", p.identities.authority, p.exits)
}

func knownControllers() []string {
	known := controllermanager.KnownControllers()
	return slices.DeleteFunc(slices.Clone(controllers), func(name string) bool { return !slices.Contains(known, name) })
}

func (p *plane) launch(name string, arguments []string) (*process, error) {
	started, err := startProcess(p.files, name, arguments, p.exits)
	if err != nil {
		return nil, err
	}
	p.processes = append(p.processes, started)
	return started, nil
}

// stop ends every component, last started first, and removes the directory.
// The kubeconfig goes first: whoever still finds it there can use the control plane.
func (p *plane) stop() error {
	if p.kubeconfig != "" {
		_ = os.Remove(p.kubeconfig)
	}
	for i := len(p.processes) - 1; i >= 0; i-- {
		p.processes[i].stop()
	}
	return p.files.remove()
}

func etcdArguments(directory, clientURL, peerURL string) []string {
	return []string{
		"--name=controlplane",
		"--data-dir=" + filepath.Join(directory, "etcd"),
		"--listen-client-urls=" + clientURL,
		"--advertise-client-urls=" + clientURL,
		"--listen-peer-urls=" + peerURL,
		"--initial-advertise-peer-urls=" + peerURL,
		"--initial-cluster=controlplane=" + peerURL,
		"--unsafe-no-fsync=true",
		"--log-level=warn",
	}
}

func (p *plane) apiserverArguments(etcdURL, address string) []string {
	arguments := []string{
		"--etcd-servers=" + etcdURL,
		"--bind-address=127.0.0.1",
		"--advertise-address=127.0.0.1",
		"--secure-port=" + portOf(address),
		"--tls-cert-file=" + p.identities.path("serving.crt"),
		"--tls-private-key-file=" + p.identities.path("serving.key"),
		"--token-auth-file=" + p.identities.path("tokens.csv"),
		"--authorization-mode=RBAC",
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-signing-key-file=" + p.identities.path("service-account.key"),
		"--service-account-key-file=" + p.identities.path("service-account.key"),
		"--service-cluster-ip-range=10.0.0.0/24",
		// A loopback address cannot be an endpoint of the service "kubernetes".
		"--endpoint-reconciler-type=none",
		// ServiceAccount would reject pods until a controller has made accounts; TaintNodesByCondition would taint
		// every new node until the node lifecycle controller removes it.
		"--disable-admission-plugins=ServiceAccount,TaintNodesByCondition",
	}
	arguments = append(arguments, flagFor("runtime-config", p.settings.runtimeConfig)...)
	return append(arguments, flagFor("feature-gates", p.settings.featureGates)...)
}

// loopArguments are common to kube-scheduler and kube-controller-manager.
func (p *plane) loopArguments(kubeconfig, address string) []string {
	arguments := []string{
		"--kubeconfig=" + kubeconfig,
		"--leader-elect=false",
		"--bind-address=127.0.0.1",
		"--secure-port=" + portOf(address),
		"--tls-cert-file=" + p.identities.path("serving.crt"),
		"--tls-private-key-file=" + p.identities.path("serving.key"),
		"--kube-api-qps=500",
		"--kube-api-burst=1000",
	}
	return append(arguments, flagFor("feature-gates", p.settings.featureGates)...)
}

// freePorts gives addresses 127.0.0.1:PORT nobody listens on at the moment.
func freePorts(count int) ([]string, error) {
	var addresses []string
	for range count {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer listener.Close()
		addresses = append(addresses, listener.Addr().String())
	}
	return addresses, nil
}

func portOf(address string) string {
	_, port, _ := net.SplitHostPort(address)
	return port
}
