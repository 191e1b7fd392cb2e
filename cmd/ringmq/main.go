package main

import (
	"fmt"
	"io"
	"os"

	"ringmq/bench"
)

// Exit codes.
const (
	exitOK    = 0
	exitWorld = 1 // something outside refused: a port, a file, a peer
	exitUsage = 2 // the command line, the environment or the configuration file is wrong
)

const usage = `ringmq is a message broker.

  ringmq serve     run the broker; "ringmq serve --help" lists the settings
  ringmq ctl       ask and repair a broker on this machine; "ringmq ctl --help" lists the verbs
  ringmq bench     measure a broker; "ringmq bench --help" lists the scenarios
  ringmq version   print the version

`

func main() {
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

// run is main with its surroundings passed in; it returns the exit code.
func run(args []string, stdout, stderr io.Writer) int {
	if len(args) == 0 {
		io.WriteString(stderr, usage) //nolint:errcheck // nowhere left to report it
		return exitUsage
	}
	switch args[0] {
	case "serve":
		return serve(args[1:], os.Environ(), stdout, stderr)
	case "ctl":
		return ctl(args[1:], os.Environ(), stdout, stderr)
	case "bench":
		return bench.Main(args[1:], stdout, stderr)
	case "version", "--version", "-version":
		fmt.Fprintln(stdout, versionLine())
		return exitOK
	case "help", "--help", "-help", "-h":
		io.WriteString(stdout, usage) //nolint:errcheck // nowhere left to report it
		return exitOK
	default:
		fmt.Fprintf(stderr, "ringmq: unknown command %q; commands are serve, ctl, bench, version\n", args[0])
		return exitUsage
	}
}
