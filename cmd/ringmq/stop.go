package main

import (
	"context"
	"io"
	"os"
	"runtime"
	"syscall"
	"time"
)

const (
	// drainMax bounds the wait for clients to answer connection.close. Well-behaved clients
	// answer in a round trip; the rest must not hold up a restart. It is a little less than the
	// five seconds after which a session gives up by itself, so that the log can name the rest.
	drainMax = 4800 * time.Millisecond

	// closeMax bounds what follows: aborting the remaining connections and ending the loops.
	closeMax = 3 * time.Second

	// cutOffNamesMax bounds the connections that the log names one by one.
	cutOffNamesMax = 100

	drainReason = "shutdown" // as RabbitMQ words it; clients match on it

	// signalRepeatMax is how long a further signal still counts as the first one: some
	// supervisors signal the process and then its whole group, which reaches it twice.
	signalRepeatMax = 250 * time.Millisecond

	goroutineDumpBytesMax = 64 << 20
)

// run waits for signals and returns the exit code: SIGTERM and SIGINT drain and end, a second
// one ends at once, SIGHUP reloads, SIGUSR1 dumps all goroutines to stderr.
func (b *broker) run(signals <-chan os.Signal, reload func(), stderr io.Writer) int {
	for sig := range signals {
		switch sig {
		case syscall.SIGUSR1:
			dumpGoroutines(stderr)
		case syscall.SIGHUP:
			reload()
		default:
			b.notify.send("STOPPING=1")
			b.log.Info("draining; a second signal ends at once", "signal", sig.String())
			return b.stopOrSecondSignal(signals)
		}
	}
	return exitOK
}

// stopOrSecondSignal drains, unless another SIGTERM or SIGINT comes first.
func (b *broker) stopOrSecondSignal(signals <-chan os.Signal) int {
	first := time.Now()
	stopped := make(chan struct{})
	code := exitOK
	go func() {
		code = b.stop()
		close(stopped)
	}()
	for {
		select {
		case <-stopped:
			b.log.Info("stopped")
			return code
		case sig := <-signals:
			if (sig == syscall.SIGTERM || sig == syscall.SIGINT) && time.Since(first) > signalRepeatMax {
				b.log.Warn("ended by a second signal, clients were cut off")
				return exitWorld
			}
		}
	}
}

// stop takes the broker out of service: /health turns to 503 first, so that a load balancer
// sends nobody new; then clients are told and waited for; then all is closed. It returns the
// exit code.
func (b *broker) stop() int {
	b.phase.Store(int32(phaseDraining))
	b.group.StopAccepting()
	ctx, cancel := context.WithTimeout(context.Background(), drainMax)
	b.server.Drain(ctx, drainReason)
	if ctx.Err() != nil {
		b.logCutOff()
	}
	cancel()

	b.watch.close()
	clean := b.closeStorage()
	ctx, cancel = context.WithTimeout(context.Background(), closeMax)
	defer cancel()
	if err := b.group.Shutdown(ctx); err != nil {
		b.log.Error("the event loops did not end in time", "error", err)
	}
	clean = b.closeDefinitions() && clean
	b.closeHTTP(ctx)
	b.lock.release()
	if !clean {
		return exitWorld
	}
	return exitOK
}

// logCutOff names the clients that did not answer during the drain.
func (b *broker) logCutOff() {
	list := b.server.Connections()
	if len(list) == 0 {
		return
	}
	for i := range list[:min(len(list), cutOffNamesMax)] {
		b.log.Warn("client cut off", "connection", list[i].Name, "user", list[i].User)
	}
	b.log.Warn("clients were cut off: they did not answer connection.close in time",
		"clients", len(list), "waited", drainMax)
}

func dumpGoroutines(w io.Writer) {
	for size := 1 << 20; ; size *= 2 {
		buf := make([]byte, size)
		if n := runtime.Stack(buf, true); n < size || size >= goroutineDumpBytesMax {
			w.Write(buf[:n]) //nolint:errcheck // standard error is where we would report it
			return
		}
	}
}
