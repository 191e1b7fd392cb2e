//ringmq:hot

package ring

import "math/bits"

// The wheel has eight rows of 64 slots. A slot of row r spans 64^r ticks, so
// the rows together reach over every int64 of nanoseconds and no timer is too
// far away.
const (
	// timerTickBits: a tick is 2^20 ns, a little over a millisecond.
	timerTickBits = 20
	timerTickMask = 1<<timerTickBits - 1
	timerRowBits  = 6
	timerSlots    = 1 << timerRowBits
	timerRows     = 8
	// timerFiring is the list of timers whose moment has come, beside the slots.
	timerFiring = timerRows * timerSlots
)

// Timer calls Fire once, on its loop, at the moment it was armed for or up to
// about two milliseconds later. The zero value with Fire set is ready to arm.
// It is meant to be embedded; it must not be copied or moved while armed.
type Timer struct {
	// Fire is called with the loop's time in ns. The timer is disarmed by then;
	// Fire may arm or disarm any timer of the loop, itself included.
	Fire func(now int64)

	// when is the tick at which it fires: never before the moment asked for.
	when uint64
	// next and prev form a circle with the other timers of the slot.
	next, prev *Timer
	// slot is the index in timerWheel.heads, plus one; 0 means not armed.
	slot uint32
}

// Armed reports whether the timer is going to fire. Owner loop only.
func (t *Timer) Armed() bool { return t.slot != 0 }

// timerWheel holds the armed timers of one loop.
//
// A timer sits in the row of the highest base-64 digit in which its tick
// differs from the wheel's, in the slot of its own digit there. So all that
// is in a row lies ahead of the wheel, in the order of the slots, and before
// all that is in the rows above: the first occupied slot of the first occupied
// row is the earliest. When the wheel reaches a slot of a higher row, the
// timers in it move down. A timer moves at most seven times in its life, and
// the wheel does nothing at all for those that are only armed and disarmed,
// as heartbeats are.
//
// Arming, disarming and finding the next deadline take constant time.
type timerWheel struct {
	// tick is the last tick whose timers have been fired.
	tick uint64
	// floor is the first tick that arm may use. While timers fire it lies past
	// the present: what a Fire arms waits for the next turn, or a timer that
	// re-arms itself for now would keep the loop here for ever.
	floor uint64
	// rows has a bit for each row with timers, occupied for each slot.
	rows     uint8
	occupied [timerRows]uint64
	// heads is the oldest timer of each slot; its prev is the newest.
	heads [timerFiring + 1]*Timer
}

// init sets the wheel to the present. REQUIRES: no timer is armed.
func (w *timerWheel) init(now int64) {
	w.tick = timerTick(now)
	w.floor = w.tick
}

// timerTick is the tick that holds the moment; what lies before the clock's
// zero is long past and counts as 0.
func timerTick(at int64) uint64 { return uint64(max(at, 0)) >> timerTickBits }

// arm makes t fire at the given moment (ns of the loop's clock) or shortly
// after; one in the past fires with the next advance. An armed timer is moved.
func (w *timerWheel) arm(t *Timer, at int64) {
	when := timerTick(at)
	if at&timerTickMask != 0 {
		when++
	}
	when = max(when, w.floor)
	slot := w.slotOf(when) + 1
	t.when = when
	if t.slot == slot {
		// The usual heartbeat: moved by less than its slot is wide.
		return
	}
	if t.slot != 0 {
		w.unlink(t)
	}
	w.link(t, slot)
}

// disarm takes t out; nothing happens if it is not armed.
func (w *timerWheel) disarm(t *Timer) {
	if t.slot != 0 {
		w.unlink(t)
	}
}

// slotOf finds the slot of a tick. REQUIRES: when >= w.tick.
func (w *timerWheel) slotOf(when uint64) uint32 {
	row := uint(bits.Len64((when^w.tick)|1)-1) / timerRowBits
	return uint32(row*timerSlots) + uint32(when>>(row*timerRowBits&63))%timerSlots
}

// link appends t to a slot (its index plus one).
func (w *timerWheel) link(t *Timer, slot uint32) {
	t.slot = slot
	index := slot - 1
	head := w.heads[index]
	if head == nil {
		t.next, t.prev = t, t
		w.heads[index] = t
		if index != timerFiring {
			w.occupied[index/timerSlots] |= 1 << (index % timerSlots)
			w.rows |= 1 << (index / timerSlots)
		}
		return
	}
	last := head.prev
	t.prev, t.next = last, head
	last.next, head.prev = t, t
}

// unlink takes t off its slot.
func (w *timerWheel) unlink(t *Timer) {
	index := t.slot - 1
	t.slot = 0
	if t.next == t {
		w.clear(index)
	} else {
		t.prev.next, t.next.prev = t.next, t.prev
		if w.heads[index] == t {
			w.heads[index] = t.next
		}
	}
	t.next, t.prev = nil, nil
}

// clear marks a slot as empty.
func (w *timerWheel) clear(index uint32) {
	w.heads[index] = nil
	if index == timerFiring {
		return
	}
	row := index / timerSlots
	w.occupied[row] &^= 1 << (index % timerSlots)
	if w.occupied[row] == 0 {
		w.rows &^= 1 << row
	}
}

// first returns the first occupied slot and the tick at which it begins.
// REQUIRES: w.rows != 0.
func (w *timerWheel) first() (index uint32, tick uint64) {
	row := uint(bits.TrailingZeros8(w.rows))
	slot := uint(bits.TrailingZeros64(w.occupied[row&(timerRows-1)]))
	shift := row * timerRowBits
	above := w.tick >> (shift + timerRowBits) << (shift + timerRowBits)
	return uint32(row*timerSlots + slot), above | uint64(slot)<<shift
}

// next returns a moment (ns) at or before which no timer fires and from which
// on advance has work to do; -1 if no timer is armed. For a timer far away it
// is the moment at which the timer moves down a row, so a sleeper wakes for it
// a few times before it fires.
func (w *timerWheel) next() int64 {
	if w.rows == 0 {
		return -1
	}
	_, tick := w.first()
	return int64(min(tick, 1<<(63-timerTickBits)-1) << timerTickBits)
}

// advance fires the timers that are due at now (ns), in the order of their
// ticks, and within a tick in the order in which they came to it. What a Fire
// arms fires with a later advance, never within this one.
func (w *timerWheel) advance(now int64) {
	present := timerTick(now)
	if present < w.tick {
		return
	}
	w.floor = present + 1
	for w.rows != 0 {
		index, tick := w.first()
		if tick > present {
			break
		}
		w.tick = max(w.tick, tick)
		if index < timerSlots {
			w.fire(index, now)
		} else {
			w.descend(index)
		}
	}
	w.tick = present
	w.floor = present
}

// descend deals the timers of a slot that the wheel has reached to lower rows.
func (w *timerWheel) descend(index uint32) {
	for {
		t := w.heads[index]
		if t == nil {
			return
		}
		w.unlink(t)
		w.link(t, w.slotOf(t.when)+1)
	}
}

// fire calls the timers of a slot. They go through a list of their own, so that
// a Fire may disarm or move those that are still to come.
func (w *timerWheel) fire(index uint32, now int64) {
	head := w.heads[index]
	w.clear(index)
	w.heads[timerFiring] = head
	for t := head; ; {
		t.slot = timerFiring + 1
		if t = t.next; t == head {
			break
		}
	}
	for {
		t := w.heads[timerFiring]
		if t == nil {
			return
		}
		w.unlink(t)
		t.Fire(now)
	}
}
