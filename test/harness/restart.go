package harness

import (
	"strings"
	"testing"
)

// Relaunch runs a broker again on the data folder, the addresses and with the flags of one that was stopped or
// killed. edit, which may be nil, changes the options first. When somebody else took a port meanwhile the new
// broker gets free ones: read its Addr. The caller stops it.
func (b *Broker) Relaunch(edit func(*Options)) (*Broker, error) {
	opts := b.opts
	opts.Listen, opts.HTTP = b.Addr, b.HTTP
	if edit != nil {
		edit(&opts)
	}
	again, err := Launch(opts)
	if err != nil && strings.Contains(err.Error(), "in use") {
		opts.Listen, opts.HTTP = "", ""
		return Launch(opts)
	}
	return again, err
}

// Restart is Relaunch for a test: it stops the broker first unless Stop or Kill did, fails the test when anything
// goes wrong, and stops the new broker when the test ends. t must be the test that the data folder belongs to, or
// one below it.
func (b *Broker) Restart(t testing.TB, edit func(*Options)) *Broker {
	t.Helper()
	if b.External() {
		t.Skip("needs a broker process of its own, RINGMQ_TEST_ADDR is set")
	}
	if err := b.Stop(); err != nil {
		t.Fatalf("stopping the broker: %v\n%s", err, b.Output())
	}
	again, err := b.Relaunch(edit)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := again.Stop(); err != nil {
			t.Errorf("stopping the broker: %v\n%s", err, again.Output())
		}
	})
	return again
}
