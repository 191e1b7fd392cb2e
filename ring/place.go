package ring

// placeBlock is how many connections a loop gets before the next loop's turn comes. Connections opened
// together usually talk to each other, and on one loop that is a function call instead of a mailbox.
const placeBlock = 4

// place chooses the loop for a new connection: the one with the fewest full blocks, the lowest index
// among equals. live is the number of connections per loop.
func place(live func(int) int64, loops int) int {
	best, bestBlocks := 0, live(0)/placeBlock
	for i := 1; i < loops; i++ {
		if blocks := live(i) / placeBlock; blocks < bestBlocks {
			best, bestBlocks = i, blocks
		}
	}
	return best
}
