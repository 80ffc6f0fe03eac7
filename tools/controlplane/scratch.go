package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// scratchPattern names the lock file of a control plane; its directory has the same name without the suffix.
const (
	scratchPattern = "kubectl-dra-controlplane-*.lock"
	lockSuffix     = ".lock"
)

// scratch is a directory for everything a control plane writes. Its lock file is held by the supervisor and inherited
// by every component, so the kernel frees it when the last of them is gone, however it ended.
type scratch struct {
	directory string
	lock      *os.File
}

// newScratch makes a directory, after it has removed those whose control planes were killed.
func newScratch() (*scratch, error) {
	removeAbandoned()
	for {
		lock, err := os.CreateTemp("", scratchPattern)
		if err != nil {
			return nil, err
		}
		// Another control plane that starts may take the new file for an abandoned one, until it is locked.
		if !tryLock(lock) || !sameFile(lock) {
			_ = lock.Close()
			continue
		}
		made := &scratch{directory: strings.TrimSuffix(lock.Name(), lockSuffix), lock: lock}
		if err := os.Mkdir(made.directory, 0o700); err != nil {
			return nil, errors.Join(err, made.remove())
		}
		return made, nil
	}
}

// remove deletes the directory, then its lock file: while any of it is left, a later start can find it.
func (s *scratch) remove() error {
	defer s.lock.Close()
	if err := os.RemoveAll(s.directory); err != nil {
		return err
	}
	return os.Remove(s.lock.Name())
}

// removeAbandoned removes the directories of control planes of which no process is left. Those of other users fail,
// and stay.
func removeAbandoned() {
	found, _ := filepath.Glob(filepath.Join(os.TempDir(), scratchPattern))
	for _, name := range found {
		lock, err := os.OpenFile(name, os.O_RDWR, 0)
		if err != nil {
			continue
		}
		abandoned := &scratch{directory: strings.TrimSuffix(name, lockSuffix), lock: lock}
		if tryLock(lock) && sameFile(lock) {
			_ = abandoned.remove()
		} else {
			_ = lock.Close()
		}
	}
}

func tryLock(file *os.File) bool {
	return syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil
}

// sameFile says whether an open file is still the one of its name.
func sameFile(file *os.File) bool {
	opened, err := file.Stat()
	if err != nil {
		return false
	}
	named, err := os.Stat(file.Name())
	return err == nil && os.SameFile(opened, named)
}
