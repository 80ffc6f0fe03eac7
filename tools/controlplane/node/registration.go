package main

import (
	"context"
	"net"
	"os"

	"google.golang.org/grpc"
	registerapi "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

// registration tells the kubelet of services that the driver does not have, as one of another age does.
type registration struct {
	name, endpoint string
	services       []string
	heard          func(call, failure string)

	registerapi.UnsafeRegistrationServer
}

// GetInfo is the kubelet's question who this is.
func (r *registration) GetInfo(context.Context, *registerapi.InfoRequest) (*registerapi.PluginInfo, error) {
	return &registerapi.PluginInfo{
		Type: registerapi.DRAPlugin, Name: r.name, Endpoint: r.endpoint, SupportedVersions: r.services,
	}, nil
}

// NotifyRegistrationStatus is the kubelet's answer.
func (r *registration) NotifyRegistrationStatus(_ context.Context, status *registerapi.RegistrationStatus) (*registerapi.RegistrationStatusResponse, error) {
	r.heard("registered", status.Error)
	return &registerapi.RegistrationStatusResponse{}, nil
}

// register listens until the function it returns is called.
func register(socket string, answers *registration) (func(), error) {
	_ = os.Remove(socket)
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return nil, err
	}
	server := grpc.NewServer()
	registerapi.RegisterRegistrationServer(server, answers)
	go func() { _ = server.Serve(listener) }()
	return server.Stop, nil
}
