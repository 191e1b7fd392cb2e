package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
)

// serve runs "ringmq serve" and returns the exit code.
func serve(args, environ []string, stdout, stderr io.Writer) int {
	o, err := loadOptions(args, environ)
	if errors.Is(err, errHelp) {
		printHelp(stdout)
		return exitOK
	}
	if err == nil {
		err = checkCores(o)
	}
	if err != nil {
		fmt.Fprintf(stderr, "ringmq: %v\n", err)
		return exitUsage
	}
	file, err := readDefinitions(o)
	if err != nil {
		fmt.Fprintf(stderr, "ringmq: %v\n", err)
		return exitUsage
	}
	if o.CheckConfig {
		printSettings(stdout, o)
		return exitOK
	}

	level := new(slog.LevelVar)
	level.Set(logLevel(o.LogLevel))
	lines := newLogWriter(stderr)
	defer lines.close()
	log := newLogger(lines, o.LogFormat, level)

	// Signals are caught before anything is opened, so that one that comes during the start
	// still ends in a clean stop.
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGUSR1)
	defer signal.Stop(signals)

	notify := newNotifier(environ, log)
	b, err := startOrSignal(func() (*broker, error) {
		return startBroker(o, surroundings{log, lines.close, notify, file})
	}, signals, notify, stderr)
	if errors.Is(err, errSignal) {
		return exitOK
	}
	if err != nil {
		lines.close() // what was logged comes before the line that says why it failed
		fmt.Fprintf(stderr, "ringmq: %v\n", err)
		return exitWorld
	}
	fmt.Fprintln(stdout, b.readyLine())
	notify.send("READY=1")
	reload := func() { b.reload(args, environ, level) }
	return b.run(signals, reload, stderr)
}

// errSignal says that a signal ended the start.
var errSignal = errors.New("ended by a signal")

// startOrSignal runs start, unless a signal comes first that ends the process: reading a long log
// takes its time, and whoever does not want to wait may go. What is on disk is safe at any moment.
func startOrSignal(start func() (*broker, error), signals <-chan os.Signal, notify notifier, stderr io.Writer) (*broker, error) {
	type result struct {
		b   *broker
		err error
	}
	started := make(chan result, 1)
	go func() {
		b, err := start()
		started <- result{b, err}
	}()
	for {
		select {
		case r := <-started:
			return r.b, r.err
		case sig := <-signals:
			switch sig {
			case syscall.SIGUSR1:
				dumpGoroutines(stderr)
			case syscall.SIGHUP:
				notify.log.Info("settings are not re-read during the start")
			default:
				notify.send("STOPPING=1")
				notify.log.Info("ended during the start", "signal", sig.String())
				return nil, errSignal
			}
		}
	}
}

// reload is what SIGHUP does: the settings are read again, and of those the log level, the
// limits on memory and disk and the consumer timeout can change while clients are connected.
func (b *broker) reload(args, environ []string, level *slog.LevelVar) {
	o, err := loadOptions(args, environ)
	var lim limits
	if err == nil {
		lim, err = b.limits(o)
	}
	if err != nil {
		b.log.Error("settings not re-read, the old ones stay", "error", err)
		return
	}
	level.Set(logLevel(o.LogLevel))
	limitGoHeap(lim.memory)
	b.watch.setLimits(lim)
	b.server.SetConsumerTimeout(o.ConsumerTimeout)
	b.log.Info("settings re-read; log-level, memory-limit, disk-free-limit and consumer-timeout change without a restart",
		"log_level", o.LogLevel, "memory_limit", byteText(lim.memory), "disk_free_limit", byteText(lim.disk),
		"consumer_timeout", o.ConsumerTimeout)
}

func newLogger(w io.Writer, format string, level slog.Leveler) *slog.Logger {
	o := &slog.HandlerOptions{Level: level}
	if format == "json" {
		return slog.New(slog.NewJSONHandler(w, o))
	}
	return slog.New(slog.NewTextHandler(w, o))
}

// logLevel maps the log-level setting, which is one of these words already.
func logLevel(word string) slog.Level {
	switch word {
	case "debug":
		return slog.LevelDebug
	case "warn":
		return slog.LevelWarn
	case "error":
		return slog.LevelError
	default:
		return slog.LevelInfo
	}
}
