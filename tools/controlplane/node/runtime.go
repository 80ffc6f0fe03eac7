package main

import (
	"context"
	"encoding/json"
	"flag"
	"os"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/cri-client/pkg/fake"
)

// controlPause is how often a control file is read again.
const controlPause = 100 * time.Millisecond

// runRuntime serves containers that "run" from the moment they are started, apart from the kubelet: they run on while
// that is away. A control file names containers that end, `{"NAMESPACE/POD/CONTAINER": EXIT_CODE}`: each that runs, also
// those that the kubelet starts again.
func runRuntime(ctx context.Context) error {
	socket := flag.String("socket", "", "the `FILE` to listen on")
	control := flag.String("control", "", "the `FILE` that says which containers end")
	flag.Parse()

	runtime := fake.NewFakeRemoteRuntime()
	// Without a size the kubelet takes an image for broken.
	runtime.ImageService.SetFakeImageSize(1000)
	if err := runtime.Start("unix://" + *socket); err != nil {
		return err
	}
	for {
		select {
		case <-ctx.Done():
			runtime.Stop()
			return nil
		case <-time.After(controlPause):
		}
		endContainers(runtime, *control)
	}
}

func endContainers(runtime *fake.RemoteRuntime, control string) {
	var ending map[string]int32
	if text, err := os.ReadFile(control); err != nil || json.Unmarshal(text, &ending) != nil {
		return
	}
	service := runtime.RuntimeService
	service.Lock()
	defer service.Unlock()
	for _, container := range service.Containers {
		labels := container.Labels
		name := labels["io.kubernetes.pod.namespace"] + "/" + labels["io.kubernetes.pod.name"] + "/" +
			labels["io.kubernetes.container.name"]
		code, ends := ending[name]
		if ends && container.State == runtimeapi.ContainerState_CONTAINER_RUNNING {
			container.State = runtimeapi.ContainerState_CONTAINER_EXITED
			container.ExitCode = code
			container.FinishedAt = time.Now().UnixNano()
		}
	}
}
