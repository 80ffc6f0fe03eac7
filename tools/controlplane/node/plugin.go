package main

import (
	"context"
	"flag"
	"net"
	"os"
	"path/filepath"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

// plugin is a device plugin, the elder way to hand out devices, beside the DRA driver of a node. Its devices are all
// healthy; its control file says how it answers when one is to be allocated.
type plugin struct {
	control control
	devices []*pluginapi.Device

	pluginapi.UnsafeDevicePluginServer
}

// runPlugin registers with a kubelet and offers devices until it is told to end.
func runPlugin(ctx context.Context) error {
	resource := flag.String("resource", "", "the `NAME` of the extended resource")
	directory := flag.String("directory", "", "the `DIRECTORY` of the kubelet for device plugins")
	behaviour := flag.String("behaviour", "", "the control `FILE`")
	flag.Parse()

	name := filepath.Base(*resource) + ".sock"
	_ = os.Remove(filepath.Join(*directory, name))
	listener, err := net.Listen("unix", filepath.Join(*directory, name))
	if err != nil {
		return err
	}
	server := grpc.NewServer()
	pluginapi.RegisterDevicePluginServer(server, &plugin{
		control: control{*behaviour}, devices: []*pluginapi.Device{{ID: "0", Health: pluginapi.Healthy}},
	})
	go func() { _ = server.Serve(listener) }()
	defer server.Stop()

	kubelet, err := grpc.NewClient("unix://"+filepath.Join(*directory, "kubelet.sock"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer kubelet.Close()
	request := &pluginapi.RegisterRequest{Version: pluginapi.Version, Endpoint: name, ResourceName: *resource}
	if _, err := pluginapi.NewRegistrationClient(kubelet).Register(ctx, request); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

// GetDevicePluginOptions says that nothing optional is done.
func (p *plugin) GetDevicePluginOptions(context.Context, *pluginapi.Empty) (*pluginapi.DevicePluginOptions, error) {
	return &pluginapi.DevicePluginOptions{}, nil
}

// ListAndWatch sends the devices once; they stay as they are.
func (p *plugin) ListAndWatch(_ *pluginapi.Empty, stream grpc.ServerStreamingServer[pluginapi.ListAndWatchResponse]) error {
	for {
		if err := stream.Send(&pluginapi.ListAndWatchResponse{Devices: p.devices}); err != nil {
			return err
		}
		select {
		case <-stream.Context().Done():
			return nil
		case <-time.After(healthPause):
		}
	}
}

// GetPreferredAllocation is never asked.
func (p *plugin) GetPreferredAllocation(context.Context, *pluginapi.PreferredAllocationRequest) (*pluginapi.PreferredAllocationResponse, error) {
	return &pluginapi.PreferredAllocationResponse{}, nil
}

// Allocate gives containers what they ask for, or the error of the control file.
func (p *plugin) Allocate(ctx context.Context, asked *pluginapi.AllocateRequest) (*pluginapi.AllocateResponse, error) {
	if err := p.control.answer(ctx, func(now behaviour) answer { return now.Prepare }); err != nil {
		return nil, err
	}
	response := &pluginapi.AllocateResponse{}
	for range asked.ContainerRequests {
		response.ContainerResponses = append(response.ContainerResponses, &pluginapi.ContainerAllocateResponse{})
	}
	return response, nil
}

// PreStartContainer is never asked.
func (p *plugin) PreStartContainer(context.Context, *pluginapi.PreStartContainerRequest) (*pluginapi.PreStartContainerResponse, error) {
	return &pluginapi.PreStartContainerResponse{}, nil
}
