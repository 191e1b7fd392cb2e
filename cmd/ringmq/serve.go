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

	b, err := startBroker(o, log)
	if err != nil {
		lines.close() // what was logged comes before the line that says why it failed
		fmt.Fprintf(stderr, "ringmq: %v\n", err)
		return exitWorld
	}
	fmt.Fprintln(stdout, b.readyLine())
	b.notify = newNotifier(environ, log)
	b.notify.send("READY=1")
	reload := func() { reloadLogLevel(args, environ, level, log) }
	return b.run(signals, reload, stderr)
}

// reloadLogLevel is what SIGHUP does: the settings are read again, and of those the log level
// can change while clients are connected.
func reloadLogLevel(args, environ []string, level *slog.LevelVar, log *slog.Logger) {
	o, err := loadOptions(args, environ)
	if err != nil {
		log.Error("settings not re-read, the old ones stay", "error", err)
		return
	}
	level.Set(logLevel(o.LogLevel))
	log.Info("settings re-read; only the log level changes without a restart", "log_level", o.LogLevel)
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
