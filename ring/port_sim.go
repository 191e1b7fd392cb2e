package ring

// AcceptHere is Accepted for a connection whose loop the backend has chosen: this one.
func (p *Port) AcceptHere(fd int) {
	p.loop.group.live[p.loop.index].Add(1)
	p.loop.adopt(fd)
}

// Waits is what the next Poll will be given: 0 if the loop has more to do, the ns until its next timer,
// or -1 if only an event or the bell gives it work. After Turn, for who drives the loops.
func (p *Port) Waits() int64 { return p.loop.wait }
