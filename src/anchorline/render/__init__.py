"""What people see: every sentence about an explanation in one file, and text, page and pictures made from it.

May import: errors, facts, laws, result, spaces.
"""
