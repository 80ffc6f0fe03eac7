//go:build !kubernetes_1_34 && !kubernetes_1_35 && !kubernetes_1_36

package main

import (
	"context"
	"time"

	"k8s.io/dynamic-resource-allocation/kubeletplugin"
)

func withHealth(serving *driver, reports bool) (kubeletplugin.DRAPlugin, []kubeletplugin.Option) {
	return serving, []kubeletplugin.Option{kubeletplugin.HealthService(reports)}
}

// WatchHealthStatus sends the health of all devices when it changes, and sooner than the kubelet stops to believe it.
func (d *driver) WatchHealthStatus(ctx context.Context, reports chan<- kubeletplugin.DeviceHealthReport) error {
	return d.watchHealth(ctx, func(devices []reported) error {
		report := kubeletplugin.DeviceHealthReport{}
		for _, each := range devices {
			report.Devices = append(report.Devices, kubeletplugin.DeviceHealth{
				PoolName: each.pool, DeviceName: each.device, Health: kubeletplugin.HealthStatus(each.health.Status),
				LastUpdated: time.Now(), Message: each.health.Message,
			})
		}
		select {
		case <-ctx.Done():
			return nil
		case reports <- report:
			return nil
		}
	})
}
