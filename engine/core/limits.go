package core

// Limits of the engine, each with its reason. A full structure is a state with
// a name, never an unbounded allocation.
const (
	// NameBytesMax is the longest name of a queue, exchange or key: a shortstr.
	NameBytesMax = 255

	// MailboxSlots is the capacity of the mailbox from one loop to another.
	// 1,024 commands of 80 bytes stay in the second-level cache; a full
	// mailbox makes the sender stop parsing publishers, not wait.
	MailboxSlots = 1024

	// MailboxBatch is how many commands a loop takes from one peer in a turn,
	// so that one busy peer cannot keep it from its own sockets.
	MailboxBatch = 1024

	// DispatchBatch is how many deliveries one queue makes before the next
	// dirty queue of the loop gets its turn.
	DispatchBatch = 1024

	// RemoteWindowBytes bounds what a queue hands to a consumer of another
	// loop before that loop says that its connection took it.
	RemoteWindowBytes = 256 << 10

	// MessageOverheadBytes is added to a body when windows are counted, so
	// that empty messages are not free.
	MessageOverheadBytes = 64

	// ExpiryBatch is how many messages one queue expires in a turn.
	ExpiryBatch = 4096

	// TTLMillisMax is the longest time to live that is accepted: ten years.
	TTLMillisMax = 315360000000

	// PurgeBatch is how many entries are dropped in one step of a purge or a
	// delete; the rest follows in the next turns.
	PurgeBatch = 65536

	// RouteCacheEntries is the size of each loop's cache of routing results.
	RouteCacheEntries = 4096

	// RouteCacheQueuesMax is the longest result that the cache keeps; larger
	// fan-outs are remembered by the channel alone.
	RouteCacheQueuesMax = 64
)
