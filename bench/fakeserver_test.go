package bench

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// TestMain lets the test binary stand in for the server that the bench starts
// when it is given no URL.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "serve" {
		os.Exit(serveFake(os.Args[2:]))
	}
	os.Exit(m.Run())
}

// serveFake is the fake broker as a process, with a counters page and a journal
// from which it brings back as many messages as it had (without their bodies).
func serveFake(args []string) int {
	flags := map[string]string{}
	for i := 0; i+1 < len(args); i += 2 {
		flags[args[i]] = args[i+1]
	}
	if flags["--fail"] != "" {
		fmt.Fprintln(os.Stderr, "refusing to serve")
		return 3
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM)
	web, err := net.Listen("tcp", flags["--http"])
	if err != nil {
		return 1
	}
	go http.Serve(web, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(w, `ringmq_info{version="0.1",io="epoll",sync="always"} 1`)
		fmt.Fprintln(w, `ringmq_loop_enters_total{loop="0"} 10`)
		fmt.Fprintln(w, `ringmq_messages_published_total 7`)
	}))
	l, err := net.Listen("tcp", flags["--listen"])
	if err != nil {
		return 1
	}
	journal, err := os.OpenFile(filepath.Join(flags["--data"], "journal"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	b := newFakeBroker(l)
	forget, _ := strconv.Atoi(flags["--forget"])
	b.restore(journal, forget)
	if flags["--mute"] == "" {
		fmt.Println("ready as ever")
	}
	<-stop
	b.stop()
	return 0
}

// restore reads the journal, less so many messages of its queues, and goes on
// writing it.
func (b *fakeBroker) restore(journal *os.File, forget int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	raw, err := os.ReadFile(journal.Name())
	if err != nil {
		panic(err)
	}
	for _, line := range strings.Split(strings.TrimSuffix(string(raw), "\n"), "\n") {
		if line == "" {
			continue
		}
		q := b.queues[line[1:]]
		if q == nil {
			q = b.addQueue(line[1:])
		}
		switch {
		case line[0] == '-':
			q.messages = q.messages[1:]
		case forget > 0:
			forget--
		default:
			q.messages = append(q.messages, fakeMessage{})
		}
	}
	b.journal = journal
}
