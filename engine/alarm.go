package engine

// Alarm is a set of reasons for which the broker takes no more messages. Any
// goroutine may raise and clear one; sessions look at the set before each publish.
type Alarm uint32

const (
	// AlarmMemory: the process holds more memory than it may.
	AlarmMemory Alarm = 1 << iota
	// AlarmDisk: the disk of the data folder has less room than it must keep.
	AlarmDisk
)

// String is the reason as clients know it from RabbitMQ, "" when there is none.
func (a Alarm) String() string {
	switch a {
	case 0:
		return ""
	case AlarmMemory:
		return "low on memory"
	case AlarmDisk:
		return "low on disk"
	}
	return "low on memory & disk"
}

// SetAlarm raises or clears an alarm. Publishers on all loops wait while any is
// up; consumers, acknowledgements and everything else go on. Any goroutine.
func (b *Broker) SetAlarm(a Alarm, on bool) {
	var was, is uint32
	for {
		was = b.alarms.Load()
		if is = was | uint32(a); !on {
			is = was &^ uint32(a)
		}
		if is == was {
			return
		}
		if b.alarms.CompareAndSwap(was, is) {
			break
		}
	}
	for _, changed := range b.alarmHooks {
		changed()
	}
}

// Alarms returns what is up; 0 is nothing. Any goroutine; one load.
func (b *Broker) Alarms() Alarm { return Alarm(b.alarms.Load()) }

// OnAlarm has f called after each change of the set of alarms, on the goroutine
// that made it: f passes the news on and must not wait. Called before the loops
// run, and before SetAlarm.
func (b *Broker) OnAlarm(f func()) { b.alarmHooks = append(b.alarmHooks, f) }
