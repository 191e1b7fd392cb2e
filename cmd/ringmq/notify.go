package main

import (
	"log/slog"
	"net"
	"strings"
	"time"
)

// notifyMax bounds the wait for a supervisor that does not read.
const notifyMax = time.Second

// notifier tells a supervisor what the broker is up to, in the protocol of systemd's Type=notify:
// a datagram to the socket that the environment names. Without one it does nothing.
type notifier struct {
	socket string
	log    *slog.Logger
}

func newNotifier(environ []string, log *slog.Logger) notifier {
	n := notifier{log: log}
	for _, pair := range environ {
		if socket, ok := strings.CutPrefix(pair, "NOTIFY_SOCKET="); ok {
			n.socket = socket
		}
	}
	return n
}

// send passes one state on, such as READY=1. That it fails is no reason not to serve.
func (n notifier) send(state string) {
	if n.socket == "" {
		return
	}
	c, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: n.socket, Net: "unixgram"})
	if err == nil {
		err = c.SetWriteDeadline(time.Now().Add(notifyMax))
		if err == nil {
			_, err = c.Write([]byte(state))
		}
		c.Close()
	}
	if err != nil {
		n.log.Warn("the supervisor cannot be told", "socket", n.socket, "state", state, "error", err)
	}
}
