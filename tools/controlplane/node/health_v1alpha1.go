//go:build kubernetes_1_34 || kubernetes_1_35 || kubernetes_1_36

package main

import (
	"reflect"
	"strings"
	"time"

	"k8s.io/dynamic-resource-allocation/kubeletplugin"
	healthapi "k8s.io/kubelet/pkg/apis/dra-health/v1alpha1"
)

// healthReporter has the health service of releases up to 1.36: whoever has its method reports health.
type healthReporter struct {
	*driver
	healthapi.UnimplementedDRAResourceHealthServer
}

func withHealth(serving *driver, reports bool) (kubeletplugin.DRAPlugin, []kubeletplugin.Option) {
	if !reports {
		return serving, nil
	}
	return &healthReporter{driver: serving}, nil
}

// NodeWatchResources sends the health of all devices when it changes, and sooner than the kubelet stops to believe it.
func (h *healthReporter) NodeWatchResources(_ *healthapi.NodeWatchResourcesRequest, stream healthapi.DRAResourceHealth_NodeWatchResourcesServer) error {
	return h.watchHealth(stream.Context(), func(devices []reported) error {
		answer := &healthapi.NodeWatchResourcesResponse{}
		for _, each := range devices {
			health := &healthapi.DeviceHealth{
				Device:          &healthapi.DeviceIdentifier{PoolName: each.pool, DeviceName: each.device},
				Health:          healthapi.HealthStatus(healthapi.HealthStatus_value[strings.ToUpper(each.health.Status)]),
				LastUpdatedTime: time.Now().Unix(),
			}
			// Since 1.36.
			if message := reflect.ValueOf(health).Elem().FieldByName("Message"); message.IsValid() {
				message.SetString(each.health.Message)
			}
			answer.Devices = append(answer.Devices, health)
		}
		return stream.Send(answer)
	})
}
