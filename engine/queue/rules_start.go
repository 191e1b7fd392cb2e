package queue

// StartRules gives a new queue other rules than its arguments ask for, as policies
// apply to it. Any loop, before Attach and before anybody knows the queue.
func (q *Queue) StartRules(r Rules) {
	if q.stream != nil {
		r = streamRules(r)
	}
	q.Rules = r
	q.timeout.Store(r.ConsumerTimeout)
	q.limited = q.stream == nil && (r.MaxLength >= 0 || r.MaxBytes >= 0)
}
