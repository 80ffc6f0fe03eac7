package main

import (
	"context"
	"reflect"
	"time"
)

// healthPause is how often health is reported again though nothing changed; after 30 s the kubelet calls it unknown.
const healthPause = 5 * time.Second

// reported is the health of one published device.
type reported struct {
	pool, device string
	health       deviceHealth
}

// watchHealth sends the health of all published devices, when it changes and every few seconds, until ctx ends.
func (d *driver) watchHealth(ctx context.Context, send func([]reported) error) error {
	var last []reported
	var sent time.Time
	for {
		if now, err := d.control.read(); err == nil {
			devices := healthOf(now)
			if !reflect.DeepEqual(devices, last) || time.Since(sent) > healthPause {
				if err := send(devices); err != nil {
					return err
				}
				last, sent = devices, time.Now()
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(controlPause):
		}
	}
}

func healthOf(now behaviour) []reported {
	var devices []reported
	for name, pool := range now.Pools {
		for _, slice := range pool.Slices {
			for _, device := range slice.Devices {
				health, said := now.Health[device.Name]
				if !said {
					health.Status = "Healthy"
				}
				devices = append(devices, reported{name, device.Name, health})
			}
		}
	}
	return devices
}
