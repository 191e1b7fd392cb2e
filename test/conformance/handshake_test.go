package conformance

import (
	"fmt"
	"strings"
	"testing"

	"ringmq/test/harness"
)

// TestCON_01_Headers: both spellings of the 0-9-1 header are answered by connection.start.
func TestCON_01_Headers(t *testing.T) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		for _, header := range []string{"AMQP\x00\x00\x09\x01", "AMQP\x01\x01\x00\x09"} {
			c := dialTCP(t, b)
			c.write([]byte(header))
			c.expect(0, 10, 10)
		}
	})
}

// TestCON_02_WrongHeader: any other eight bytes get the header that would do, and the socket closes.
func TestCON_02_WrongHeader(t *testing.T) {
	headers := map[string]string{
		"0-8 with a new revision": "AMQP\x01\x01\x08\x01", "http": "GET / HT", "zeros": "\x00\x00\x00\x00\x00\x00\x00\x00",
		"0-9-2": "AMQP\x00\x00\x09\x02", "lower case": "amqp\x00\x00\x09\x01", "tls": "\x16\x03\x01\x02\x00\x01\x00\x01",
		"unknown 1.x": "AMQP\x07\x01\x00\x00",
	}
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		for name, header := range headers {
			t.Run(name, func(t *testing.T) {
				c := dialTCP(t, b)
				c.write([]byte(header))
				if got := c.readRest(); got != "AMQP\x00\x00\x09\x01" {
					t.Errorf("answer %q", got)
				}
			})
		}
	})
}

// TestCON_03_ServerProperties: the keys on which clients gate features.
func TestCON_03_ServerProperties(t *testing.T) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		c := dialTCP(t, b)
		c.header()
		for _, key := range []string{"product", "version", "platform", "copyright", "information", "cluster_name"} {
			if c.server[key].str() == "" {
				t.Errorf("server property %q is %q, want a text", key, c.server[key])
			}
		}
		var x, y, z int
		if n, _ := fmt.Sscanf(c.server["version"].str(), "%d.%d.%d", &x, &y, &z); n != 3 {
			t.Errorf("version %q is not dotted numbers", c.server["version"].str())
		}
		caps := c.server["capabilities"]
		if len(caps) < 5 || caps[0] != 'F' {
			t.Fatalf("capabilities %q, want a table", caps)
		}
		got := tableValues(t, tbl(caps[5:]))
		for _, key := range []string{"publisher_confirms", "exchange_exchange_bindings", "basic.nack",
			"consumer_cancel_notify", "consumer_priorities", "authentication_failure_close", "per_consumer_qos"} {
			if got[key] != "t\x01" {
				t.Errorf("capability %q is %q, want true", key, got[key])
			}
		}
	})
}

// TestCON_04_Mechanisms: PLAIN and AMQPLAIN are offered, en_US is the locale, any locale is accepted.
func TestCON_04_Mechanisms(t *testing.T) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		c := dialTCP(t, b)
		c.write([]byte("AMQP\x00\x00\x09\x01"))
		d := c.expect(0, 10, 10)
		d.take(2)
		d.ls()
		offered := " " + d.ls() + " "
		for _, mechanism := range []string{"PLAIN", "AMQPLAIN"} {
			if !strings.Contains(offered, " "+mechanism+" ") {
				t.Errorf("mechanisms %q lack %s", offered, mechanism)
			}
		}
		if locales := d.ls(); locales != "en_US" {
			t.Errorf("locales %q", locales)
		}
		d.end()
		c.method(0, 10, 11, args().table(capabilities()).ss("PLAIN").ls(plainGuest).ss("kl_GL"))
		c.expect(0, 10, 30)
	})
}

// TestCON_05_to_08_RefusedLogins: what each way of not logging in gets.
func TestCON_05_to_08_RefusedLogins(t *testing.T) {
	noCapability := table("product", "conformance")
	rows := []struct {
		id, name string
		l        login
		told     bool // CN(403) instead of a bare close
	}{
		{"CON-05", "mechanism not offered", login{mechanism: "KERBEROS", response: "x"}, false},
		{"CON-06", "wrong password", login{response: "\x00guest\x00nope"}, true},
		{"CON-06", "unknown user", login{response: "\x00nobody\x00guest"}, true},
		{"CON-06", "empty password", login{response: "\x00guest\x00"}, true},
		{"CON-06", "wrong password without capability", login{response: "\x00guest\x00nope", props: noCapability}, false},
		{"CON-07", "no NUL", login{response: "guest"}, false},
		{"CON-07", "one NUL", login{response: "\x00guest"}, false},
		{"CON-08", "AMQPLAIN without PASSWORD", login{mechanism: "AMQPLAIN", response: string(table("LOGIN", "guest"))}, false},
		{"CON-08", "AMQPLAIN of another type", login{mechanism: "AMQPLAIN",
			response: string(table("LOGIN", 5, "PASSWORD", "guest"))}, false},
		{"CON-08", "AMQPLAIN garbage", login{mechanism: "AMQPLAIN", response: "\xff\xff\xff\xff"}, false},
	}
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		for _, row := range rows {
			t.Run(row.id+"/"+row.name, func(t *testing.T) {
				t.Parallel()
				c := dialTCP(t, b)
				c.start(row.l)
				if !row.told {
					c.closedSocket()
					return
				}
				checkFault(t, c.connectionFault(), 403, "Login was refused using authentication mechanism PLAIN. "+
					"For details see the broker logfile.", 0)
			})
		}
	})
}

// TestCON_08_AMQPLAIN: a table without its length logs in.
func TestCON_08_AMQPLAIN(t *testing.T) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		c := connectAs(t, b, login{mechanism: "AMQPLAIN", response: string(table("LOGIN", "guest", "PASSWORD", "guest"))})
		c.open(1).sync(1)
	})
}

// TestCON_09_OddCapabilities: capabilities of a wrong type count as none.
func TestCON_09_OddCapabilities(t *testing.T) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		c := connectAs(t, b, login{props: table("capabilities", "yes", "connection_name", "odd")})
		c.open(1).sync(1)
	})
}

// TestCON_10_Tune: the default offer.
func TestCON_10_Tune(t *testing.T) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		c := connect(t, b)
		if want := [3]uint32{2047, 131072, 60}; c.offer != want {
			t.Errorf("tune offers channel-max, frame-max, heartbeat %v, want %v", c.offer, want)
		}
	})
}

// TestCON_11_TuneOkRefused: an answer above the offer, or a frame-max under 4096, ends the connection.
func TestCON_11_TuneOkRefused(t *testing.T) {
	rows := []struct {
		name       string
		channelMax uint16
		frameMax   uint32
	}{
		{"channel-max above the offer", 2048, 131072}, {"frame-max above the offer", 2047, 131073},
		{"frame-max 4095", 2047, 4095}, {"frame-max 1", 2047, 1},
	}
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		for _, row := range rows {
			t.Run(row.name, func(t *testing.T) {
				t.Parallel()
				c := dialTCP(t, b)
				c.start(login{})
				c.expect(0, 10, 30)
				c.method(0, 10, 31, args().u16(row.channelMax).u32(row.frameMax).u16(0))
				c.openVhost(login{})
				c.gone() // RabbitMQ only hangs up; a connection.close that says why is welcome
			})
		}
	})
}

// TestF11_TuneOkAccepted: 0 means the offer, 4096 is the protocol's floor, and the broker's frames obey what was agreed.
func TestF11_TuneOkAccepted(t *testing.T) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		for _, channelMax := range []uint16{0, 1, 2047} {
			for _, frameMax := range []uint32{0, 4096, 8192, 131072} {
				t.Run(fmt.Sprintf("channel-max %d frame-max %d", channelMax, frameMax), func(t *testing.T) {
					if channelMax == 0 || frameMax == 0 {
						b.SkipRabbitMQ(t, "0 is refused as above the offer")
					}
					c := dialTCP(t, b)
					c.start(login{})
					c.expect(0, 10, 30)
					c.method(0, 10, 31, args().u16(channelMax).u32(frameMax).u16(0))
					if frameMax != 0 {
						c.frameMax = int(frameMax) // read() refuses larger frames of the broker
					}
					c.openVhost(login{})
					c.expect(0, 10, 41)
					c.open(1)
					q := c.newQueue(1)
					body := strings.Repeat("b", 300_000)
					c.publish(1, "", q, body)
					if got := c.mustGet(1, q, true); got.body != body {
						t.Errorf("body of %d bytes changed", len(body))
					}
				})
			}
		}
	})
}

// TestCON_13_LargeStartOk: start-ok of up to 8192 bytes is accepted before tune.
func TestCON_13_LargeStartOk(t *testing.T) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		for _, size := range []int{4096, 8192} {
			if size > 4096 {
				b.SkipRabbitMQ(t, "4096 before tune in 3.x")
			}
			c := dialTCP(t, b)
			c.header()
			payload := func(filler int) []byte {
				p := table("capabilities", table("basic.nack", true), "filler", strings.Repeat("f", filler))
				return args().u16(10).u16(11).table(p).ss("PLAIN").ls(plainGuest).ss("en_US").b
			}
			filler := size - 8 - len(payload(0))
			c.frame(1, 0, payload(filler))
			c.expect(0, 10, 30)
		}
	})
}

// TestCON_14_UnknownVhost: the virtual host is named in the refusal.
func TestCON_14_UnknownVhost(t *testing.T) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		l := login{vhost: "nowhere"}
		c := dialTCP(t, b)
		c.start(l)
		c.tuneOk(l)
		c.openVhost(l)
		checkFault(t, c.connectionFault(), 530, "vhost nowhere not found", m(10, 40))
	})
}

// TestCON_15_OutOfOrder: handshake methods out of order end the socket without a method.
func TestCON_15_OutOfOrder(t *testing.T) {
	rows := []struct {
		name string
		send func(c *client)
	}{
		{"open before tune-ok", func(c *client) {
			c.start(login{})
			c.expect(0, 10, 30)
			c.openVhost(login{})
		}},
		{"channel.open before connection.open", func(c *client) {
			c.start(login{})
			c.tuneOk(login{})
			c.method(1, 20, 10, args().ss(""))
		}},
		{"tune-ok first", func(c *client) {
			c.header()
			c.method(0, 10, 31, args().u16(0).u32(131072).u16(0))
		}},
		{"start-ok on channel 1", func(c *client) {
			c.header()
			c.method(1, 10, 11, args().table(capabilities()).ss("PLAIN").ls(plainGuest).ss("en_US"))
		}},
		{"body frame first", func(c *client) {
			c.header()
			c.frame(3, 0, []byte("x"))
		}},
	}
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		for _, row := range rows {
			t.Run(row.name, func(t *testing.T) {
				t.Parallel()
				c := dialTCP(t, b)
				row.send(c)
				c.gone() // RabbitMQ 3.10 names 505 for channel.open, and nothing for the others
			})
		}
	})
}

// TestCON_15_AfterOpen: the same methods after open are CN(504).
func TestCON_15_AfterOpen(t *testing.T) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		for name, send := range map[string]func(c *client){
			"second open": func(c *client) { c.openVhost(login{}) },
			"tune-ok":     func(c *client) { c.method(0, 10, 31, args().u16(0).u32(131072).u16(0)) },
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				c := connect(t, b)
				send(c)
				if f := c.connectionFault(); f.code != 504 {
					t.Errorf("code %d (%q), want 504", f.code, f.text)
				}
			})
		}
	})
}

// TestCON_16_HandshakeTimeout: a peer that stops anywhere in the handshake is dropped.
func TestCON_16_HandshakeTimeout(t *testing.T) {
	harness.ForEachBackend(t, func(t *testing.T, b *harness.Broker) {
		for name, send := range map[string]func(c *client){
			"silent":             func(*client) {},
			"half a header":      func(c *client) { c.write([]byte("AMQP")) },
			"after the header":   func(c *client) { c.header() },
			"half a start-ok":    func(c *client) { c.header(); c.write([]byte{1, 0, 0, 0, 0, 1, 0, 0, 10}) },
			"after start-ok":     func(c *client) { c.start(login{}); c.expect(0, 10, 30) },
			"heartbeats in tune": func(c *client) { c.start(login{}); c.expect(0, 10, 30); c.frame(8, 0, nil) },
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				c := dialTCP(t, b)
				send(c)
				c.closedSocket()
			})
		}
	})
}
