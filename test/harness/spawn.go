package harness

import (
	"os/exec"
	"runtime"
	"sync"
)

// spawner is the one OS thread that starts brokers. Linux sends a child's parent-death signal when the *thread* that
// started it ends, and the Go runtime ends threads at will, so the thread must be one that stays for good.
var spawner struct {
	once sync.Once
	jobs chan func()
}

func startOnDaemonThread(cmd *exec.Cmd) error {
	spawner.once.Do(func() {
		spawner.jobs = make(chan func())
		go func() {
			runtime.LockOSThread()
			for job := range spawner.jobs {
				job()
			}
		}()
	})
	done := make(chan error)
	spawner.jobs <- func() { done <- cmd.Start() }
	return <-done
}
