"""Pictures of an Explanation: they read, never query, never solve."""
