package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"time"

	"k8s.io/dynamic-resource-allocation/resourceslice"
)

// behaviour is what a driver does, as its control file says now.
type behaviour struct {
	// Pools are what is published, by name. Without any the driver publishes nothing, and leaves what is there.
	Pools     map[string]resourceslice.Pool `json:"pools"`
	Prepare   answer                        `json:"prepare"`
	Unprepare answer                        `json:"unprepare"`
	// Health is by name of the device; those without an entry are healthy.
	Health map[string]deviceHealth `json:"health"`
}

// answer is how a call of the kubelet ends: after some time, or never while Hang is true; with an error or well.
type answer struct {
	Seconds float64 `json:"seconds"`
	Hang    bool    `json:"hang"`
	Error   string  `json:"error"`
}

type deviceHealth struct {
	// Status is Healthy, Unhealthy or Unknown.
	Status  string `json:"status"`
	Message string `json:"message"`
}

// control is the file with the behaviour. Who changes it replaces it as a whole.
type control struct{ path string }

func (c control) read() (behaviour, error) {
	var now behaviour
	text, err := os.ReadFile(c.path)
	if err != nil {
		return now, err
	}
	return now, json.Unmarshal(text, &now)
}

// answer waits as long as the file says and returns the error it says. A call that hangs goes on when the file changes.
func (c control) answer(ctx context.Context, which func(behaviour) answer) error {
	now, err := c.read()
	if err != nil {
		return err
	}
	until := time.Now().Add(time.Duration(which(now).Seconds * float64(time.Second)))
	for which(now).Hang || time.Now().Before(until) {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(controlPause):
		}
		if now, err = c.read(); err != nil {
			return err
		}
	}
	if text := which(now).Error; text != "" {
		return errors.New(text)
	}
	return nil
}
