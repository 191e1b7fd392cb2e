//go:build interop

package interop

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// scenarios is the list that every client goes through, by the names that its program knows them by. What one
// proves is the same in each language. The letters and numbers are the checklist's.
var scenarios = []string{
	// The core of the protocol.
	"confirm-consume-ack", // properties of every kind and bodies come back as sent, in order (FLD-01, BAS-21, CNF-01)
	"nack-requeue-reject", // a requeued message is back in its place, flagged; a rejected one is gone (BAS-13, BAS-15)
	"get-empty",
	"mandatory-return", // 312 with the body, then the confirm (CNF-05)
	"topic",
	"headers",
	"exchange-bind",   // E2E-01, and the unbinding of it
	"cancel-notify",   // the queue is deleted under the consumer (CAN-01)
	"prefetch",        // QOS-01, QOS-05
	"large-body",      // none, one octet, around the frame limit, a mebibyte (WIR-06)
	"channel-error",   // a missing queue closes the channel with 404 and nothing else
	"transaction",     // TX-03, TX-05
	"update-secret",   // the connection goes on
	"user-id",         // the login's passes, another's is 406 (BAS-19)
	"prefetch-global", // one window for two consumers, which grows and goes at once (QOS-02)

	// What queue arguments bring.
	"message-ttl",               // by queue, by message, 0 (TTL-01, TTL-03), and the expired one's death (DLX-03)
	"queue-expires",             // publishing does not keep it (TTL-05)
	"length-drop-head",          // by messages and by bytes (LEN-02)
	"length-reject-publish",     // nack, and room again (LEN-03, CNF-02)
	"length-reject-publish-dlx", // nack, and a dead letter (LEN-03)
	"dead-letter",               // x-death as the client parses it: each reason, the count, first and last (DLX-03, DLX-04)
	"priority-queue",            // highest first, above the maximum is the maximum, none is 0 (BAS-23)
	"single-active-consumer",    // the next takes over (CSM-02)
	"consumer-priority",         // the lower when the higher is full (CSM-01)

	// Routing beyond the four exchange types, and what concerns a whole connection.
	"cc-bcc",             // copies, and BCC gone (SSD-01)
	"alternate-exchange", // no return (ALT-01)
	"direct-reply-to",    // DRT-01, DRT-03
	"consistent-hash",    // a key stays with its queue, shares follow the weights (XT-01)
	"connection-blocked", // a disk alarm comes and goes (ALM-01, ALM-02, ALM-03)

	"quorum-delivery-limit", // x-delivery-count counts up to the limit, then the dead letter (DLX-09)
	"stream-offset",         // first, a number, an interval, next; reading takes nothing away (STR-02)
	"delayed-message",       // later than one that came after it, x-delay negated (XT-02)
	"consumer-timeout",      // 406 with the time, and the message back (CSM-03)
}

// needAlarm are scenarios that only run against a broker whose disk limit the test can change.
var needAlarm = []string{"connection-blocked"}

// asked lists the scenarios of one run. RINGMQ_TEST_SCENARIOS=a,b narrows it.
func asked(own bool) []string {
	var names []string
	only := os.Getenv("RINGMQ_TEST_SCENARIOS")
	for _, s := range scenarios {
		switch {
		case only != "" && !slices.Contains(strings.Split(only, ","), s):
		case slices.Contains(needAlarm, s) && !own:
		default:
			names = append(names, s)
		}
	}
	return names
}

// checkResults holds what a program printed against what it was asked: a line `ok NAME`, `FAIL NAME` or
// `none NAME: why the client cannot` for each, and nothing twice.
func checkResults(t *testing.T, names []string, output string) {
	t.Helper()
	passed := 0
	seen := map[string]bool{}
	for line := range strings.Lines(output) {
		verdict, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		name, why, _ := strings.Cut(rest, ":")
		if verdict != "ok" && verdict != "FAIL" && verdict != "none" || !slices.Contains(names, name) {
			continue
		}
		if seen[name] {
			t.Errorf("%s is reported twice", name)
		}
		seen[name] = true
		switch verdict {
		case "ok":
			passed++
		case "FAIL":
			t.Errorf("%s failed", name)
		case "none":
			t.Logf("%s not run:%s", name, why)
		}
	}
	for _, name := range names {
		if !seen[name] {
			t.Errorf("%s was not run and not excused", name)
		}
	}
	t.Logf("%d of %d scenarios passed", passed, len(names))
}
