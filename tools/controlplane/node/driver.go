package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/dynamic-resource-allocation/kubeletplugin"
	"k8s.io/dynamic-resource-allocation/resourceslice"
)

// driver answers the kubelet as its control file says, and writes down each call.
type driver struct {
	name    string
	control control
	mutex   sync.Mutex
	calls   *os.File
}

// runDriver registers with a kubelet and publishes devices until it is told to end.
func runDriver(ctx context.Context) error {
	name := flag.String("name", "", "the driver's `NAME`")
	node := flag.String("node", "", "the `NAME` of the node it is on")
	kubeconfig := flag.String("kubeconfig", "", "the `FILE` to reach the API server with")
	registry := flag.String("registry", "", "the `DIRECTORY` in which the kubelet looks for plugins")
	data := flag.String("data", "", "a `DIRECTORY` of the driver's own, for its socket")
	behaviour := flag.String("behaviour", "", "the control `FILE`")
	calls := flag.String("calls", "", "the `FILE` to which a line is added for each call of the kubelet")
	instance := flag.String("instance", "", "the `UID` of the driver's pod, where two instances may run side by side")
	services := flag.String("services", "", "names of `SERVICES` to register instead of those that are served")
	health := flag.Bool("health", true, "whether to report the health of devices")
	flag.Parse()

	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	written, err := os.OpenFile(*calls, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer written.Close()
	for _, directory := range []string{*registry, *data} {
		if err := os.MkdirAll(directory, 0o750); err != nil {
			return err
		}
	}

	serving := &driver{name: *name, control: control{*behaviour}, calls: written}
	options := []kubeletplugin.Option{
		kubeletplugin.DriverName(*name),
		kubeletplugin.NodeName(*node),
		kubeletplugin.KubeClient(client),
		kubeletplugin.RegistrarDirectoryPath(*registry),
		kubeletplugin.PluginDataDirectoryPath(*data),
		kubeletplugin.RollingUpdate(types.UID(*instance)),
	}
	if *services != "" {
		options = append(options, kubeletplugin.RegistrationService(false))
		stop, err := register(filepath.Join(*registry, *name+"-reg.sock"), &registration{
			name: *name, endpoint: filepath.Join(*data, "dra.sock"), services: strings.Split(*services, ","), heard: serving.note,
		})
		if err != nil {
			return err
		}
		defer stop()
	}
	plugin, more := withHealth(serving, *health)
	helper, err := kubeletplugin.Start(ctx, plugin, append(options, more...)...)
	if err != nil {
		return err
	}
	defer helper.Stop()
	serving.note("started", "")
	return serving.publish(ctx, helper)
}

// publish brings the published pools to what the control file says, again and again.
func (d *driver) publish(ctx context.Context, helper *kubeletplugin.Helper) error {
	var published map[string]resourceslice.Pool
	for {
		if now, err := d.control.read(); err == nil && len(now.Pools) > 0 && !reflect.DeepEqual(now.Pools, published) {
			if err := helper.PublishResources(ctx, resourceslice.DriverResources{Pools: now.Pools}); err != nil {
				return err
			}
			published = now.Pools
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(controlPause):
		}
	}
}

// PrepareResourceClaims gives every device of a claim a CDI name that no runtime will look for.
func (d *driver) PrepareResourceClaims(ctx context.Context, claims []*resourceapi.ResourceClaim) (map[types.UID]kubeletplugin.PrepareResult, error) {
	failure := d.control.answer(ctx, func(now behaviour) answer { return now.Prepare })
	results := map[types.UID]kubeletplugin.PrepareResult{}
	for _, claim := range claims {
		d.note("prepare "+claim.Namespace+"/"+claim.Name, errorText(failure))
		result := kubeletplugin.PrepareResult{Err: failure}
		for _, allocated := range claim.Status.Allocation.Devices.Results {
			if allocated.Driver == d.name && failure == nil {
				result.Devices = append(result.Devices, kubeletplugin.Device{
					Requests:     []string{allocated.Request},
					PoolName:     allocated.Pool,
					DeviceName:   allocated.Device,
					CDIDeviceIDs: []string{"example.com/device=" + allocated.Device},
				})
			}
		}
		results[claim.UID] = result
	}
	return results, nil
}

// UnprepareResourceClaims has nothing to undo.
func (d *driver) UnprepareResourceClaims(ctx context.Context, claims []kubeletplugin.NamespacedObject) (map[types.UID]error, error) {
	failure := d.control.answer(ctx, func(now behaviour) answer { return now.Unprepare })
	results := map[types.UID]error{}
	for _, claim := range claims {
		d.note("unprepare "+claim.Namespace+"/"+claim.Name, errorText(failure))
		results[claim.UID] = failure
	}
	return results, nil
}

// HandleError writes down what went wrong in the background; the helper tries again.
func (d *driver) HandleError(_ context.Context, err error, what string) {
	d.note("error "+what, err.Error())
	if !errors.Is(err, kubeletplugin.ErrRecoverable) {
		fmt.Fprintln(os.Stderr, "node:", what, err)
		os.Exit(1)
	}
}

// note adds a line to the file of calls.
func (d *driver) note(call, failure string) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	line, _ := json.Marshal(map[string]string{"time": time.Now().UTC().Format(time.RFC3339Nano), "call": call, "error": failure})
	_, _ = d.calls.Write(append(line, '\n'))
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
