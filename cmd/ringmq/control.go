package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"ringmq/admin"
	"ringmq/admin/control"
	"ringmq/admin/definitions"
	"ringmq/engine/session091"
)

// controlName is the socket in the data folder over which "ringmq ctl" talks to the broker. Its
// file permissions are the login.
const controlName = "ringmq.sock"

// socketPathMax is what fits into the kernel's address of a socket file.
const socketPathMax = 107

// shortPath is another name for the file if its own is too long for a socket's address, by way of an
// open descriptor of its folder. done ends the name's life.
func shortPath(path string) (short string, done func(), err error) {
	if len(path) <= socketPathMax {
		return path, func() {}, nil
	}
	folder, err := os.OpenFile(filepath.Dir(path), unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		return "", nil, err
	}
	return fmt.Sprintf("/proc/self/fd/%d/%s", folder.Fd(), filepath.Base(path)), func() { folder.Close() }, nil
}

// listenControl makes the socket. One that is there is a dead broker's: we hold the lock of the folder.
func listenControl(path string) (net.Listener, error) {
	if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	short, done, err := shortPath(path)
	if err != nil {
		return nil, err
	}
	defer done()
	// The mode is set before the file exists, so that there is no moment at which others may connect.
	private := func(_, _ string, c syscall.RawConn) error {
		var failed error
		err := c.Control(func(fd uintptr) { failed = unix.Fchmod(int(fd), 0o600) })
		if err == nil {
			err = failed
		}
		return err
	}
	config := net.ListenConfig{Control: private}
	l, err := config.Listen(context.Background(), "unix", short)
	if err != nil {
		return nil, err
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false) // its name may be the short one
	return l, nil
}

// openControl serves "ringmq ctl". A file system without sockets is no reason not to serve clients.
func (b *broker) openControl() {
	path := filepath.Join(b.dataPath, controlName)
	l, err := listenControl(path)
	if err != nil {
		b.log.Warn("\"ringmq ctl\" will not find this broker: its socket cannot be made", "socket", path, "error", err)
		return
	}
	b.control = admin.Serving(control.Handler(b.controlOptions(), admin.TrustedHandler(source{b}, b.log)), b.log)
	go func() {
		if err := b.control.Serve(l); err != nil {
			b.log.Error("the control socket has stopped", "error", err)
		}
	}()
}

// controlOptions are what the verbs of "ringmq ctl" work on.
func (b *broker) controlOptions() control.Options {
	return control.Options{
		Broker: b.server.Broker, Codec: session091.JSONArgs{}, Log: b.log,
		About: definitions.About{Product: "ringmq", Version: version, CompatVersion: compatVersion},
		Unready: func() string {
			if b.is(phaseRunning) {
				return ""
			}
			return source{b}.Unready()
		},
	}
}

// removeControl takes the socket's name away. REQUIRES: the lock of the folder is still held.
func (b *broker) removeControl() {
	if b.control != nil {
		if err := os.Remove(filepath.Join(b.dataPath, controlName)); err != nil && !os.IsNotExist(err) {
			b.log.Warn("the control socket cannot be removed", "error", err)
		}
	}
}

// byteText is a size for people.
func byteText(n int64) string {
	const units = "KMGTPE"
	if n < 1<<10 {
		return fmt.Sprintf("%d B", n)
	}
	v, unit := float64(n)/1024, 0
	for v >= 1023.95 && unit < len(units)-1 {
		v, unit = v/1024, unit+1
	}
	return strings.Replace(fmt.Sprintf("%.1f", v), ".0", "", 1) + " " + units[unit:unit+1] + "iB"
}
