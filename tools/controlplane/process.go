package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

const (
	startLimit = 120 * time.Second
	pollPause  = 50 * time.Millisecond
	logTail    = 4000
)

// process is a running component and the pipe that ties its life to ours.
type process struct {
	name    string
	command *exec.Cmd
	stdin   io.Closer
	logPath string
	ended   chan struct{}
}

// startProcess starts a component whose output goes to NAME.log in the scratch directory.
// Its exit is reported on exits, which must have room for every component.
func startProcess(files *scratch, name string, arguments []string, exits chan<- *process) (*process, error) {
	executable, err := os.Executable()
	if err != nil {
		return nil, err
	}
	logPath := filepath.Join(files.directory, name+".log")
	log, err := os.Create(logPath)
	if err != nil {
		return nil, err
	}
	defer log.Close()

	command := exec.Command(executable, append([]string{name}, arguments...)...)
	command.Env = append(os.Environ(), followParentVariable+"=1")
	command.Dir = files.directory
	command.ExtraFiles = []*os.File{files.lock}
	command.Stdout, command.Stderr = log, log
	stdin, err := command.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := command.Start(); err != nil {
		return nil, err
	}
	child := &process{name: name, command: command, stdin: stdin, logPath: logPath, ended: make(chan struct{})}
	go func() {
		_ = command.Wait()
		close(child.ended)
		exits <- child
	}()
	return child, nil
}

// stop kills the component: all state is thrown away afterwards, so there is nothing to shut down in order.
func (p *process) stop() {
	_ = p.command.Process.Kill()
	<-p.ended
	_ = p.stdin.Close()
}

// failure says that the component ended or did not get ready, with the end of its log.
func (p *process) failure(what string) error {
	text, _ := os.ReadFile(p.logPath)
	if len(text) > logTail {
		text = text[len(text)-logTail:]
	}
	return fmt.Errorf("%s %s; the end of its log:\n%s", p.name, what, bytes.TrimSpace(text))
}

// waitReady returns when url answers 200, with an error when any component ends before, or when it takes too long.
func (p *process) waitReady(ctx context.Context, url string, authority *x509.CertPool, exits <-chan *process) error {
	client := http.Client{
		Timeout:   2 * time.Second,
		Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: authority}, DisableKeepAlives: true},
	}
	deadline := time.After(startLimit)
	for {
		if answer, err := client.Get(url); err == nil {
			_ = answer.Body.Close()
			if answer.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case ended := <-exits:
			return ended.failure("ended while starting")
		case <-deadline:
			return p.failure("was not ready in time")
		case <-time.After(pollPause):
		}
	}
}
