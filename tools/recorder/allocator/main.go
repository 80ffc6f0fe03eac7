// Allocator answers cases with the structured allocator of the k8s.io/dynamic-resource-allocation module that it is
// built with: one JSON object a line on standard input, one answer a line on standard output.
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"reflect"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"
)

const nodeTimeout = 20 * time.Second

// question is a line of the corpus. Features are names of fields of structured.Features; of a name that this release
// does not have, nothing can be switched on.
type question struct {
	ID               string                       `json:"id"`
	Features         []string                     `json:"allocatorFeatures"`
	ListsInSelectors bool                         `json:"listsInSelectors"`
	Nodes            []*corev1.Node               `json:"nodes"`
	Slices           []*resourceapi.ResourceSlice `json:"slices"`
	Classes          []*resourceapi.DeviceClass   `json:"classes"`
	Claims           []*resourceapi.ResourceClaim `json:"claims"`
	AllocatedClaims  []*resourceapi.ResourceClaim `json:"allocatedClaims"`
}

type nodeAnswer struct {
	Node     string                         `json:"node"`
	Results  []resourceapi.AllocationResult `json:"results,omitempty"`
	Error    string                         `json:"error,omitempty"`
	TimedOut bool                           `json:"timedOut,omitempty"`
	Panic    string                         `json:"panic,omitempty"`
}

type classes map[string]*resourceapi.DeviceClass

func (c classes) List() ([]*resourceapi.DeviceClass, error) {
	var all []*resourceapi.DeviceClass
	for _, class := range c {
		all = append(all, class)
	}
	return all, nil
}

func (c classes) Get(name string) (*resourceapi.DeviceClass, error) {
	if class, ok := c[name]; ok {
		return class, nil
	}
	return nil, fmt.Errorf("deviceclass.resource.k8s.io %q not found", name)
}

// withFields sets the boolean fields of these names, where there are such.
func withFields(target any, names sets.Set[string]) {
	value := reflect.ValueOf(target).Elem()
	for name := range names {
		if field := value.FieldByName(name); field.IsValid() {
			field.SetBool(true)
		}
	}
}

// state is what the claims hold, as the scheduler's plugin counts it.
func state(claims []*resourceapi.ResourceClaim, sharing bool) structured.AllocatedState {
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
			if result.AdminAccess != nil && *result.AdminAccess {
				continue
			}
			id := structured.MakeDeviceID(result.Driver, result.Pool, result.Device)
			if !sharing || result.ShareID == nil {
				out.AllocatedDevices.Insert(id)
				continue
			}
			out.AllocatedSharedDeviceIDs.Insert(structured.MakeSharedDeviceID(id, result.ShareID))
			if result.ConsumedCapacity != nil {
				out.AggregatedCapacity.Insert(structured.NewDeviceConsumedCapacity(id, result.ConsumedCapacity))
			}
		}
	}
	return out
}

func answer(asked question) ([]nodeAnswer, error) {
	names := sets.New(asked.Features...)
	var features structured.Features
	withFields(&features, names)
	celFeatures := cel.Features{EnableConsumableCapacity: features.ConsumableCapacity}
	if asked.ListsInSelectors {
		withFields(&celFeatures, sets.New("EnableListTypeAttributes"))
	}
	known := classes{}
	for _, class := range asked.Classes {
		known[class.Name] = class
	}
	held := state(asked.AllocatedClaims, features.ConsumableCapacity)
	ctx := context.Background()
	allocator, err := structured.NewAllocator(ctx, features, held, known, asked.Slices, cel.NewCache(10, celFeatures))
	if err != nil {
		return nil, err
	}
	out := make([]nodeAnswer, 0, len(asked.Nodes))
	for _, node := range asked.Nodes {
		out = append(out, onNode(ctx, allocator, node, asked.Claims))
	}
	return out, nil
}

func onNode(ctx context.Context, allocator structured.Allocator, node *corev1.Node, claims []*resourceapi.ResourceClaim) (out nodeAnswer) {
	out.Node = node.Name
	defer func() {
		if panicked := recover(); panicked != nil {
			out.Panic = fmt.Sprint(panicked)
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, nodeTimeout)
	defer cancel()
	results, err := allocator.Allocate(ctx, node, claims)
	if err != nil {
		out.Error = err.Error()
		out.TimedOut = errors.Is(err, context.DeadlineExceeded)
		return out
	}
	out.Results = withoutShareIDs(results)
	return out
}

// withoutShareIDs writes the random ids of shares as "*".
func withoutShareIDs(results []resourceapi.AllocationResult) []resourceapi.AllocationResult {
	for _, result := range results {
		for i := range result.Devices.Results {
			if share := result.Devices.Results[i].ShareID; share != nil {
				*share = "*"
			}
		}
	}
	return results
}

func main() {
	reader := bufio.NewReaderSize(os.Stdin, 1<<20)
	writer := bufio.NewWriter(os.Stdout)
	defer writer.Flush()
	encoder := json.NewEncoder(writer)
	for {
		line, err := reader.ReadBytes('\n')
		if len(bytes.TrimSpace(line)) > 0 {
			var asked question
			if err := json.Unmarshal(line, &asked); err != nil {
				fmt.Fprintln(os.Stderr, "a line is no case:", err)
				os.Exit(2)
			}
			nodes, err := answer(asked)
			if err != nil {
				fmt.Fprintln(os.Stderr, asked.ID+":", err)
				os.Exit(2)
			}
			if err := encoder.Encode(map[string]any{"id": asked.ID, "nodes": nodes}); err != nil {
				os.Exit(1)
			}
			writer.Flush()
		}
		if err != nil {
			return
		}
	}
}
