package conformance

import (
	"net"
	"strings"
	"testing"

	"ringmq/test/harness"
)

// TestGEN_03_LostSocketLogged: a socket that is lost without close is a warning with user, virtual host and peer,
// however it is lost; an orderly close is none.
func TestGEN_03_LostSocketLogged(t *testing.T) {
	t.Parallel()
	harness.ForEachBackendAlone(t, harness.Options{Cores: "0,1"}, func(t *testing.T, b *harness.Broker) {
		orderly := connect(t, b).open(1)
		closed := orderly.nc.LocalAddr().String()
		orderly.shut()
		for name, lose := range map[string]func(c *client){
			"reset":                func(c *client) { c.cut() },
			"end":                  func(c *client) { _ = c.nc.Close() },
			"end of one direction": func(c *client) { _ = c.nc.(*net.TCPConn).CloseWrite() },
			"in the middle of a frame": func(c *client) {
				c.write([]byte{1, 0, 1, 0, 0})
				_ = c.nc.Close()
			},
			"with a channel at work": func(c *client) {
				c.open(1)
				c.consume(1, c.newQueue(1), "t", false)
				c.cut()
			},
		} {
			t.Run(name, func(t *testing.T) {
				c := connect(t, b)
				peer := c.nc.LocalAddr().String()
				lose(c)
				var lines []string
				eventually(t, "a line in the log", func() bool { lines = warnings(b, peer); return len(lines) > 0 })
				if len(lines) != 1 || !strings.Contains(lines[0], "user=guest") || !strings.Contains(lines[0], "vhost=/") {
					t.Errorf("the log says\n%s", strings.Join(lines, "\n"))
				}
			})
		}
		if lines := warnings(b, closed); len(lines) > 0 {
			t.Errorf("an orderly close is in the log\n%s", strings.Join(lines, "\n"))
		}
	})
}

// warnings are the lines of level warn that name a peer.
func warnings(b *harness.Broker, peer string) (found []string) {
	for line := range strings.SplitSeq(b.Output(), "\n") {
		if strings.Contains(line, "level=WARN") && strings.Contains(line, peer+" ") {
			found = append(found, line)
		}
	}
	return found
}
