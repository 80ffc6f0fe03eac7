"""The layers around the scheduler: who decides about a pod before it or in its place, and which objects tell why."""
