package crash

import (
	"testing"

	"ringmq/test/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }
