package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"ringmq/engine"
	"ringmq/wal"
)

const (
	definitionsFile = "definitions.db"
	logFolder       = "wal" // one subfolder for each event loop

	// storageCloseMax bounds the last writes of a stop. A log that was not closed in order only
	// takes longer to read at the next start.
	storageCloseMax = 5 * time.Second

	recoverEvery = time.Second      // between two lines of progress
	recoverGrant = 30 * time.Second // what a supervisor is asked for with each of them
)

// syncLoses says for each --sync what a power cut loses.
var syncLoses = map[string]string{
	"always":   "nothing that was confirmed",
	"interval": "what was confirmed since the last sync, up to --sync-interval",
	"off":      "what was confirmed and the kernel had not written by itself, half a minute of messages or more",
}

// openStorage reads back definitions and messages. The loops exist and do not run.
func (b *broker) openStorage() error {
	if err := b.checkDefinitions(); err != nil {
		return err
	}
	store, err := openDefinitions(filepath.Join(b.dataPath, definitionsFile), b.o.Sync, b.storageFailed, b.definitionsTrouble)
	if err != nil {
		return err
	}
	b.definitions = store
	if err := b.server.Broker.Restore(store); err != nil {
		return fmt.Errorf("the definitions in %s cannot be restored: %w", b.dataPath, err)
	}
	r := newRecovery(b)
	defer r.end()
	report, err := b.server.Broker.OpenStorage(engine.StorageOptions{
		Dir:          filepath.Join(b.dataPath, logFolder),
		Sync:         b.o.Sync,
		SyncInterval: b.o.SyncInterval,
		SegmentSize:  int64(b.o.WALSegmentSize),
		Compress:     b.o.WALCompress,
		Log:          b.log,
		Progress:     r.progress,
		Fatal:        b.storageFailed,
	})
	if err != nil {
		return b.storageOpenError(err)
	}
	for _, cut := range report.Cut {
		b.log.Info("the end of a log that was never promised is cut off", "cut", cut)
	}
	if report.Bytes > 0 {
		b.log.Info("recovered", "messages", report.Messages, "size", byteText(report.Bytes),
			"seconds", time.Since(r.started).Seconds())
	}
	return nil
}

// checkDefinitions refuses a data folder with a message log and without definitions: no queue would
// be there to claim the messages, and their space would be used again.
func (b *broker) checkDefinitions() error {
	if _, err := os.Stat(filepath.Join(b.dataPath, definitionsFile)); !errors.Is(err, os.ErrNotExist) {
		return nil
	}
	logs := filepath.Join(b.dataPath, logFolder)
	files, err := filepath.Glob(filepath.Join(logs, "*", "*.wal"))
	if err != nil || len(files) == 0 {
		return nil
	}
	return fmt.Errorf("%s is missing in %s, but %s holds messages, which no queue would claim; restore the file, or move %s away to begin with nothing",
		definitionsFile, b.dataPath, logs, logs)
}

// definitionsTrouble says that the disk has no room for definitions, or has again. Declares that
// make something durable are answered with an error meanwhile, and take effect all the same.
func (b *broker) definitionsTrouble(err error) {
	if err != nil {
		b.log.Error("definitions cannot be written for now: durable declares are answered with an error", "error", err)
		return
	}
	b.log.Info("definitions can be written again")
}

// storageOpenError is the line for a log that cannot be opened.
func (b *broker) storageOpenError(err error) error {
	var damage *wal.CorruptionError
	if errors.Is(err, wal.ErrDamaged) || errors.As(err, &damage) {
		return fmt.Errorf("the message log is damaged, nothing was changed: %w; "+
			"\"ringmq ctl wal check --data %s\" shows what is lost, \"ringmq ctl wal repair --data %s\" goes on without it",
			err, b.dataPath, b.dataPath)
	}
	return fmt.Errorf("the message log in %s cannot be opened: %w", filepath.Join(b.dataPath, logFolder), err)
}

// closeStorage writes out what is left, while the loops still run. It reports whether that went well.
func (b *broker) closeStorage() bool {
	ctx, cancel := context.WithTimeout(context.Background(), storageCloseMax)
	defer cancel()
	if err := b.server.Broker.CloseStorage(ctx); err != nil {
		b.log.Error("the message log was not closed in order; nothing confirmed is lost, the next start takes longer", "error", err)
		return false
	}
	return true
}

// closeDefinitions closes the catalog, last of all. It reports whether that went well.
func (b *broker) closeDefinitions() bool {
	if b.definitions == nil {
		return true
	}
	err := b.definitions.Close()
	b.definitions = nil
	if err != nil {
		b.log.Error("the definitions were not closed in order", "error", err)
	}
	return err == nil
}

// storageFailed ends the process at once: what the disk did with the last write is unknown, and a
// broker that goes on would promise what it cannot know. Any goroutine; it does not return.
func (b *broker) storageFailed(err error) {
	b.failed.Do(func() {
		b.log.Error(b.failureText(err), failureFacts(err)...)
		b.flushLog()
		b.exit(exitWorld)
	})
	select {}
}

// errDataGone: the data folder was deleted, moved or replaced while the broker ran.
var errDataGone = errors.New("the data folder is not there any more")

func (b *broker) failureText(err error) string {
	if errors.Is(err, errDataGone) || errors.Is(err, os.ErrNotExist) {
		return "the data folder " + b.dataPath + " was deleted, moved or replaced, the broker ends; messages that were confirmed are where the folder is now, if anywhere"
	}
	if b.o.Sync != "always" {
		return "storage has failed, the broker ends; messages that were confirmed may be lost with --sync " + b.o.Sync + "; restart after the disk is repaired"
	}
	return "storage has failed, the broker ends; no message that was confirmed is lost; restart after the disk is repaired"
}

// failureFacts are what is known of a failure, as the log has it.
func failureFacts(err error) []any {
	var facts []any
	var io *wal.IOError
	var path *os.PathError
	switch {
	case errors.As(err, &io):
		facts = append(facts, "operation", io.Op, "file", io.File, "offset", io.Offset)
	case errors.As(err, &path):
		facts = append(facts, "operation", path.Op, "file", path.Path)
	}
	var errno syscall.Errno
	if errors.As(err, &errno) {
		facts = append(facts, "errno", int(errno))
	}
	return append(facts, "error", err)
}

// recovery shows how far the reading of the logs is.
type recovery struct {
	b       *broker
	started time.Time
	stop    chan struct{}
	stopped sync.WaitGroup

	mu    sync.Mutex
	loops map[int]*recoveryLoop
}

// recoveryLoop is one log that is being read.
type recoveryLoop struct {
	done, total int64
	told        int64 // of done, at the last line
}

func newRecovery(b *broker) *recovery {
	r := &recovery{b: b, started: time.Now(), stop: make(chan struct{}), loops: map[int]*recoveryLoop{}}
	r.stopped.Add(1)
	go r.run()
	return r
}

// progress takes the figures of one log. Any goroutine.
func (r *recovery) progress(loop int, done, total int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.loops[loop] == nil {
		r.loops[loop] = &recoveryLoop{}
	}
	r.loops[loop].done, r.loops[loop].total = done, total
}

func (r *recovery) run() {
	defer r.stopped.Done()
	tick := time.NewTicker(recoverEvery)
	defer tick.Stop()
	for {
		select {
		case <-r.stop:
			return
		case <-tick.C:
			r.tell()
		}
	}
}

// tell writes a line for each log that is being read and asks the supervisor for more time.
func (r *recovery) tell() {
	r.mu.Lock()
	defer r.mu.Unlock()
	var done, total int64
	for loop, l := range r.loops {
		done, total = done+l.done, total+l.total
		if l.done == l.total && l.told == l.done {
			continue
		}
		r.b.log.Info("recovering", "loop", loop, "done_mb", l.done/1e6, "total_mb", l.total/1e6,
			"mb_per_s", (l.done-l.told)/1e6*int64(time.Second/recoverEvery))
		l.told = l.done
	}
	r.b.notify.send(fmt.Sprintf("EXTEND_TIMEOUT_USEC=%d\nSTATUS=recovering, %d of %d MB",
		recoverGrant.Microseconds(), done/1e6, total/1e6))
}

func (r *recovery) end() {
	close(r.stop)
	r.stopped.Wait()
}
