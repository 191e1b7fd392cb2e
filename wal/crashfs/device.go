package crashfs

import (
	"math/rand/v2"

	"ringmq/wal"
)

// Device carries out the calls of one log when it is told to, in an order of the
// seed's choice.
type Device struct {
	// Carry, if set, carries out writes; without it each sync is a sync of the file.
	Carry func(f wal.File, offset int64, buf []byte, sync bool) error

	rng     *rand.Rand
	pending []func() func()
	writing bool
}

var (
	_ wal.Device = (*Device)(nil)
	_ wal.Disk   = (*FS)(nil)
)

// NewDevice returns a device.
func NewDevice(rng *rand.Rand) *Device { return &Device{rng: rng} }

// Pending is how many calls wait.
func (d *Device) Pending() int { return len(d.pending) }

// Step carries out one call that waits and completes it; false if there is none.
func (d *Device) Step() bool {
	if len(d.pending) == 0 {
		return false
	}
	i := d.rng.IntN(len(d.pending))
	run := d.pending[i]
	d.pending = append(d.pending[:i], d.pending[i+1:]...)
	run()()
	return true
}

// Drain carries out everything, and what comes of it.
func (d *Device) Drain() {
	for d.Step() {
	}
}

// Write implements wal.Device.
func (d *Device) Write(f wal.File, offset int64, buf []byte, sync bool, done func(error)) {
	if d.writing {
		panic("crashfs: two writes in flight")
	}
	d.writing = true
	carry := d.Carry
	if carry == nil {
		carry = writeAndSync
	}
	d.pending = append(d.pending, func() func() {
		err := carry(f, offset, buf, sync)
		d.writing = false
		return func() { done(err) }
	})
}

func writeAndSync(f wal.File, offset int64, buf []byte, sync bool) error {
	if len(buf) > 0 {
		n, err := f.WriteAt(buf, offset)
		if err != nil {
			return err
		}
		if n != len(buf) {
			return ErrShort
		}
	}
	if sync {
		return f.Sync()
	}
	return nil
}

// Read implements wal.Device.
func (d *Device) Read(f wal.File, offset int64, buf []byte, done func(int, error)) {
	d.pending = append(d.pending, func() func() {
		n, err := f.ReadAt(buf, offset)
		return func() { done(n, err) }
	})
}

// Run implements wal.Device.
func (d *Device) Run(job func() error, done func(error)) {
	d.pending = append(d.pending, func() func() {
		err := job()
		return func() { done(err) }
	})
}
