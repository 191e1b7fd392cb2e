package amqp091

import "testing"

// Fixtures of the allocation tests and benchmarks: what one message costs.
var (
	publishArgs = cutArgs((&BasicPublish{Exchange: []byte("amq.direct"), RoutingKey: []byte("orders.new")}).Append(nil, 1))
	ackArgs     = cutArgs((&BasicAck{DeliveryTag: 1 << 33}).Append(nil, 1))
	smallProps  = (&Properties{Flags: FlagContentType | FlagDeliveryMode, ContentType: []byte("text/plain"), DeliveryMode: 2}).Append(nil)
	headerProps = (&Properties{Flags: FlagHeaders | FlagDeliveryMode, DeliveryMode: 2,
		Headers: AppendTable(AppendInt32(AppendString(nil, "region", "eu"), "n", 5), "t", AppendBool(nil, "b", true))}).Append(nil)
	allProps = func() []byte { p := fullProperties(); return p.Append(nil) }()

	consumerTag  = []byte("amq.ctag-0123456789abcdefghijkl")
	exchangeName = []byte("amq.direct")
	routingKey   = []byte("orders.new")

	sinkInt   int
	sinkErr   error
	sinkBytes []byte
	sinkValue Value
	sinkHead  FrameHead
)

func cutArgs(frame []byte) []byte { return frame[11 : len(frame)-1] }

// hotCases are the functions of the message path. Each runs in the allocation
// test and as a benchmark.
func hotCases() map[string]func() {
	buf := make([]byte, 0, 512)
	full := buf[:512]
	var publish BasicPublish
	var ack BasicAck
	var props Properties
	headers := Table(headerProps[6 : len(headerProps)-1])
	frame := AppendHeartbeat(nil)
	return map[string]func(){
		"ParseFrameHead":      func() { sinkHead = ParseFrameHead(frame) },
		"BasicPublishDecode":  func() { sinkErr = publish.Decode(publishArgs) },
		"BasicAckDecode":      func() { sinkErr = ack.Decode(ackArgs) },
		"BasicAckAppend":      func() { sinkBytes = ack.Append(buf, 1) },
		"PutDeliver":          func() { sinkInt = PutDeliver(full, 1, consumerTag, 1<<33, false, exchangeName, routingKey) },
		"PutContentHeader":    func() { sinkInt = PutContentHeader(full, 1, 1024, smallProps) },
		"PropertiesSmall":     func() { sinkErr = props.Decode(smallProps) },
		"PropertiesHeaders":   func() { sinkErr = props.Decode(headerProps) },
		"PropertiesAll":       func() { sinkErr = props.Decode(allProps) },
		"PropertiesAppend":    func() { sinkBytes = props.Append(buf) },
		"TableValidate":       func() { sinkErr = headers.Validate() },
		"TableLookup":         func() { sinkValue, _ = headers.Lookup("n") },
		"TableBuild":          func() { sinkBytes = AppendInt64(AppendString(buf, "queue", "q"), "count", 3) },
		"TableAll":            func() { sinkInt = rangeCount(headers) },
		"PublishTruncated":    func() { sinkErr = publish.Decode(publishArgs[:5]) },
		"MethodIDFromClient":  func() { sinkInt = boolInt(MethodBasicNack.FromClient()) },
		"AppendContentHeader": func() { sinkBytes = AppendContentHeader(buf, 1, 1024, smallProps) },
	}
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

func rangeCount(t Table) int {
	n := 0
	for key, v := range t.All() {
		n += len(key) + len(v.Data)
	}
	return n
}

func TestHotPathAllocatesNothing(t *testing.T) {
	for name, f := range hotCases() {
		if n := testing.AllocsPerRun(100, f); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

// BenchmarkHotPath measures each by its indirect call, about a nanosecond too much.
func BenchmarkHotPath(b *testing.B) {
	for name, f := range hotCases() {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				f()
			}
		})
	}
}
