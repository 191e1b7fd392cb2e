// Package policy says what a policy is: its keys and their values, the names that
// it applies to, and what a policy and an operator's policy amount to together.
//
// What lives here: checking a definition, choosing the one policy of an object,
// joining two definitions. What may not: queues and exchanges, who keeps the
// policies, when they take effect. Package engine has all of that
// (engine/admin_policy.go, engine/admin_rules.go).
//
// # Laws
//
//   - A Policy never changes after Parse made it. Any goroutine may ask it.
//   - One policy applies to an object, never two: the one with the highest
//     priority, and among equals the one whose name sorts first.
//   - An operator's policy can only tighten: of two numbers the lower one counts.
package policy
