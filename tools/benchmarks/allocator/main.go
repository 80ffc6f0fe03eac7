// Allocator reads a List of Kubernetes objects, as kubectl get -o json writes it, and allocates a claim on every node
// with the structured allocator of the k8s.io/dynamic-resource-allocation module that it is built with: once per node,
// one node after another, as the scheduler's filter does for each node. It prints how many nodes have the devices, and
// how long it took.
//
//	allocator FILE NAMESPACE/CLAIM FEATURE...
package main

import (
	"context"
	stdjson "encoding/json"
	"fmt"
	"os"
	"reflect"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"
)

type cluster struct {
	nodes   []*corev1.Node
	slices  []*resourceapi.ResourceSlice
	classes classes
	claims  []*resourceapi.ResourceClaim
}

type classes map[string]*resourceapi.DeviceClass

func (c classes) List() ([]*resourceapi.DeviceClass, error) {
	all := make([]*resourceapi.DeviceClass, 0, len(c))
	for _, class := range c {
		all = append(all, class)
	}
	return all, nil
}

func (c classes) Get(name string) (*resourceapi.DeviceClass, error) {
	if class, ok := c[name]; ok {
		return class, nil
	}
	return nil, fmt.Errorf("no DeviceClass %q", name)
}

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
}

// decoded is an item of the list as an object of its type.
func decoded[T any](item []byte) *T {
	out := new(T)
	fail(json.Unmarshal(item, out))
	return out
}

// read decodes the kinds that allocation reads. Pods and the rest are passed over.
func read(file string) cluster {
	data, err := os.ReadFile(file)
	fail(err)
	var list struct {
		Items []stdjson.RawMessage `json:"items"`
	}
	fail(json.Unmarshal(data, &list))
	out := cluster{classes: classes{}}
	for _, item := range list.Items {
		switch decoded[metav1.TypeMeta](item).Kind {
		case "Node":
			out.nodes = append(out.nodes, decoded[corev1.Node](item))
		case "ResourceSlice":
			out.slices = append(out.slices, decoded[resourceapi.ResourceSlice](item))
		case "ResourceClaim":
			out.claims = append(out.claims, decoded[resourceapi.ResourceClaim](item))
		case "DeviceClass":
			class := decoded[resourceapi.DeviceClass](item)
			out.classes[class.Name] = class
		}
	}
	return out
}

// held is what claims hold that take whole devices, which is all that these clusters have.
func held(claims []*resourceapi.ResourceClaim) structured.AllocatedState {
	out := structured.AllocatedState{
		AllocatedDevices:         sets.New[structured.DeviceID](),
		AllocatedSharedDeviceIDs: sets.New[structured.SharedDeviceID](),
		AggregatedCapacity:       structured.NewConsumedCapacityCollection(),
	}
	for _, claim := range claims {
		if claim.Status.Allocation == nil {
			continue
		}
		for _, result := range claim.Status.Allocation.Devices.Results {
			out.AllocatedDevices.Insert(structured.MakeDeviceID(result.Driver, result.Pool, result.Device))
		}
	}
	return out
}

func main() {
	began := time.Now()
	known := read(os.Args[1])
	read := time.Now()
	var features structured.Features
	for _, name := range os.Args[3:] {
		if field := reflect.ValueOf(&features).Elem().FieldByName(name); field.IsValid() {
			field.SetBool(true)
		}
	}
	var asked []*resourceapi.ResourceClaim
	for _, claim := range known.claims {
		if claim.Namespace+"/"+claim.Name == os.Args[2] {
			asked = append(asked, claim)
		}
	}
	cache := cel.NewCache(10, cel.Features{EnableConsumableCapacity: features.ConsumableCapacity})
	ctx := context.Background()
	allocator, err := structured.NewAllocator(ctx, features, held(known.claims), known.classes, known.slices, cache)
	fail(err)
	fits := 0
	for _, node := range known.nodes {
		results, err := allocator.Allocate(ctx, node, asked)
		fail(err)
		if results != nil {
			fits++
		}
	}
	fmt.Printf("{\"claims\": %d, \"nodes\": %d, \"fits\": %d, \"readSeconds\": %.3f, \"allocateSeconds\": %.3f}\n",
		len(asked), len(known.nodes), fits, read.Sub(began).Seconds(), time.Since(read).Seconds())
}
