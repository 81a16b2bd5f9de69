# Thin front of tools/tasks.py. TORCH=2.14.1 (default), 2.13.0 or all; ARGS are passed on.
TORCH ?= 2.14.1
ARGS ?=
PYTHON3 ?= python3
TASKS := $(PYTHON3) tools/tasks.py

.PHONY: help build train run-cann test test-all bench lint format docs fuzz soak clean
help:
	@$(TASKS) --help
build train run-cann test test-all bench docs fuzz soak:
	@$(TASKS) $@ --torch $(TORCH) -- $(ARGS)
lint format clean:
	@$(TASKS) $@
