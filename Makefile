# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause
# One file, no recursion. `make help` lists the targets; V=1 shows commands; SAN=address,undefined
# or SAN=thread builds with sanitizers into a folder of its own; DEBUG=1 makes the frame ledger abort.

VERSION := $(shell sed -n 's/^.define XDPATH_VERSION "\(.*\)"/\1/p' include/xdpath/base.h)
SOVERSION := 0

PREFIX ?= /usr/local
LIBDIR ?= $(PREFIX)/lib
DESTDIR ?=

CC ?= gcc
CLANG ?= clang
LLVM_STRIP ?= $(firstword $(shell command -v llvm-strip llvm-strip-19 llvm-strip-16 llvm-strip-14 2>/dev/null) llvm-strip)
BPFTOOL ?= $(firstword $(shell command -v bpftool 2>/dev/null) $(wildcard /usr/sbin/bpftool) bpftool)
PKG_CONFIG ?= pkg-config

Q := $(if $(V),,@)
say = $(if $(V),,@printf '  %-7s %s\n' $(1) $(2))

JOBS := $(shell nproc 2>/dev/null || echo 1)
comma := ,
SAN ?=
DEBUG ?=
B := build$(if $(SAN),/san-$(subst $(comma),-,$(SAN)))$(if $(DEBUG),/debug)

# Our libraries; every other target works before they are installed, so that `make deps` can run.
LIBS := libbpf libxdp libmnl libpcap libelf jansson
LIB_LIBS := libbpf libxdp libmnl libpcap libelf
CMD_LIBS := jansson

WARN := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Werror
CPPFLAGS += -D_GNU_SOURCE -Iinclude -Iuser/lib -Iuser/bench -I$(B)/skel
CFLAGS ?= -O2 -g
ALL_CFLAGS = -std=gnu11 $(WARN) -fPIC -fvisibility=hidden -fno-strict-aliasing -pthread \
	$(CFLAGS) $(if $(SAN),-fsanitize=$(SAN) -fno-sanitize-recover=all -fno-omit-frame-pointer) \
	$(if $(findstring thread,$(SAN)),-Wno-tsan) $(if $(DEBUG),-DXDPATH_DEBUG)
ALL_LDFLAGS = $(LDFLAGS) -pthread $(if $(SAN),-fsanitize=$(SAN))

BPF_CFLAGS := -g -O2 -target bpf -mcpu=v3 -Wall -Wextra -Werror -fno-strict-aliasing -Iinclude -Ibpf \
	-I/usr/include/$(shell $(CC) -print-multiarch 2>/dev/null)

LIB_SRC := $(wildcard user/lib/*.c)
CMD_SRC := $(wildcard user/cmd/*.c) $(wildcard user/bench/*.c)
BPF_SRC := $(wildcard bpf/*.bpf.c)
UNIT_SRC := $(wildcard tests/unit/*.c)
BENCH_SRC := $(filter-out %.bpf.c,$(wildcard tests/bench/*.c))
FUZZ_SRC := $(wildcard tests/fuzz/*.c)
CONF_SRC := $(filter-out %.bpf.c,$(wildcard tests/conf/*.c))

LIB_OBJ := $(LIB_SRC:%.c=$(B)/%.o)
CMD_OBJ := $(CMD_SRC:%.c=$(B)/%.o)
BPF_OBJ := $(BPF_SRC:bpf/%.bpf.c=$(B)/bpf/xdpath_%.bpf.o)
SKEL := $(BPF_SRC:bpf/%.bpf.c=$(B)/skel/%.skel.h)
UNIT_BIN := $(UNIT_SRC:tests/unit/%.c=$(B)/tests/unit/%)
BENCH_BIN := $(BENCH_SRC:tests/bench/%.c=$(B)/tests/bench/%) $(if $(SAN),,$(B)/tests/bench/preload/syscost.so)
CONF_OBJ := $(CONF_SRC:%.c=$(B)/%.o)
CONF_BIN := $(B)/tests/conf/conf
HEADERS := $(wildcard include/xdpath/*.h)

.PHONY: all help deps check check-unit check-netns conformance check-vm vm-run vm-shell check-long ci demo bench experiments install uninstall fmt lint clean
.DEFAULT_GOAL := all

all: $(B)/xdpath $(B)/libxdpath.a $(B)/libxdpath.so $(B)/xdpath.pc $(BPF_OBJ) $(SKEL) ## build everything into build/

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 22
	@echo '  variables: V=1 SAN=address,undefined|thread DEBUG=1 PREFIX=/usr/local DESTDIR= CC= CLANG='

deps: ## install what is missing, by the distribution's package manager
	$(Q)tools/deps.sh

.PHONY: deps-lint deps-vm
deps-lint deps-vm: deps-%:
	$(Q)tools/deps.sh $*

# ---- BPF ----------------------------------------------------------------------------------------

$(B)/bpf/xdpath_%.bpf.o: bpf/%.bpf.c $(wildcard bpf/*.h) include/xdpath/shared.h
	@mkdir -p $(@D)
	$(call say,BPF,$@)
	$(Q)$(CLANG) $(BPF_CFLAGS) -c $< -o $@.tmp && $(LLVM_STRIP) -g $@.tmp && mv $@.tmp $@

# kept, so that nothing is rebuilt for nothing
.SECONDARY: $(UNIT_SRC:%.c=$(B)/%.o) $(BENCH_SRC:%.c=$(B)/%.o) $(FUZZ_SRC:%.c=$(B)/%.o)

$(B)/skel/%.skel.h: $(B)/bpf/xdpath_%.bpf.o
	@mkdir -p $(@D)
	$(call say,SKEL,$@)
	$(Q){ echo '/* NOLINTBEGIN: generated */'; $(BPFTOOL) gen skeleton $< name $*_bpf 2>$@.log || { cat $@.log >&2; exit 1; }; echo '/* NOLINTEND */'; } > $@.tmp && mv $@.tmp $@

# ---- library and command --------------------------------------------------------------------------

$(B)/%.o: %.c | $(SKEL)
	@mkdir -p $(@D)
	$(call say,CC,$@)
	$(Q)$(CC) $(CPPFLAGS) $(ALL_CFLAGS) $$($(PKG_CONFIG) --cflags $(LIBS)) -MMD -MP -c $< -o $@

$(B)/libxdpath.a: $(LIB_OBJ)
	$(call say,AR,$@)
	$(Q)rm -f $@ && ar rcs $@ $(LIB_OBJ)

$(B)/libxdpath.so: $(LIB_OBJ) user/lib/xdpath.map
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_LDFLAGS) -shared -Wl,-soname,libxdpath.so.$(SOVERSION) $(if $(SAN),,-Wl,-z$(comma)defs) \
		-Wl,--version-script=user/lib/xdpath.map -o $@ $(LIB_OBJ) $$($(PKG_CONFIG) --libs $(LIB_LIBS))

$(B)/xdpath: $(CMD_OBJ) $(B)/libxdpath.a
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $(CMD_OBJ) $(B)/libxdpath.a $$($(PKG_CONFIG) --libs $(LIB_LIBS) $(CMD_LIBS)) -lm

pc = sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@LIBDIR@|$(LIBDIR)|' -e 's|@VERSION@|$(VERSION)|' user/lib/xdpath.pc.in

$(B)/xdpath.pc: user/lib/xdpath.pc.in include/xdpath/base.h Makefile
	@mkdir -p $(@D)
	$(Q)$(pc) > $@

# ---- tests ----------------------------------------------------------------------------------------

$(B)/tests/unit/%: $(B)/tests/unit/%.o $(filter-out %/main.o,$(CMD_OBJ)) $(B)/libxdpath.a
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ $$($(PKG_CONFIG) --libs $(LIB_LIBS) $(CMD_LIBS)) -lcmocka -lm

$(B)/tests/bench/%: $(B)/tests/bench/%.o $(B)/libxdpath.a
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ $$($(PKG_CONFIG) --libs $(LIB_LIBS)) -lm

# the instrument's own cost: its objects without the command
$(B)/tests/bench/instrument: $(B)/tests/bench/instrument.o $(filter-out %/main.o,$(CMD_OBJ)) $(B)/libxdpath.a
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ $$($(PKG_CONFIG) --libs $(LIB_LIBS) $(CMD_LIBS)) -lm

# what xdpath is compared with: our library is not even offered to the linker
$(B)/tests/bench/bare $(B)/tests/bench/bare_deep $(B)/tests/bench/rtt: $(B)/tests/bench/%: $(B)/tests/bench/%.o
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $< $$($(PKG_CONFIG) --libs libbpf)

$(B)/tests/bench/preload/%.so: tests/bench/preload/%.c
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) $(CPPFLAGS) -std=gnu11 $(WARN) $(CFLAGS) -fPIC -shared -o $@ $< -ldl

$(B)/tests/bench/steer.bpf.o: tests/bench/steer.bpf.c tests/bench/steer_flow.h
	@mkdir -p $(@D)
	$(call say,BPF,$@)
	$(Q)$(CLANG) $(BPF_CFLAGS) -c $< -o $@.tmp && $(LLVM_STRIP) -g $@.tmp && mv $@.tmp $@

$(B)/tests/bench/bench_steer.skel.h: $(B)/tests/bench/steer.bpf.o
	$(call say,SKEL,$@)
	$(Q)$(BPFTOOL) gen skeleton $< name bench_steer_bpf > $@.tmp && mv $@.tmp $@

$(B)/tests/bench/steer.o: CPPFLAGS += -I$(B)/tests/bench
$(B)/tests/bench/steer.o: | $(B)/tests/bench/bench_steer.skel.h

$(B)/tests/conf/conf.bpf.o: tests/conf/conf.bpf.c
	@mkdir -p $(@D)
	$(call say,BPF,$@)
	$(Q)$(CLANG) $(BPF_CFLAGS) -c $< -o $@.tmp && $(LLVM_STRIP) -g $@.tmp && mv $@.tmp $@

$(B)/tests/conf/conf.skel.h: $(B)/tests/conf/conf.bpf.o
	$(call say,SKEL,$@)
	$(Q)$(BPFTOOL) gen skeleton $< name conf_bpf > $@.tmp && mv $@.tmp $@

$(CONF_OBJ): CPPFLAGS += -I$(B)/tests/conf
$(CONF_OBJ): | $(B)/tests/conf/conf.skel.h

$(CONF_BIN): $(CONF_OBJ) $(B)/libxdpath.a
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ $$($(PKG_CONFIG) --libs $(LIB_LIBS))

check: deps ## install, build, pass the tests (as root, under 8 minutes)
	$(Q)$(MAKE) --no-print-directory -j$(JOBS) all $(UNIT_BIN) $(BENCH_BIN) $(CONF_BIN)
	$(Q)B=$(B) tests/run.sh unit netns conf

check-unit: all $(UNIT_BIN) ## unit tests only
	$(Q)B=$(B) tests/run.sh unit

check-netns: all $(UNIT_BIN) ## namespace and veth tests only (as root); TEST=name runs one
	$(Q)B=$(B) tests/run.sh netns $(TEST)

conformance: $(CONF_BIN) ## the kernel's AF_XDP contract and ours, row by row (as root); TEST=name runs one
	$(Q)B=$(B) V=1 tests/run.sh conf $(TEST)

check-vm: deps-vm ## real NIC drivers in a virtual machine (as root, under 5 minutes); see tests/vm/README.md
	$(Q)$(MAKE) --no-print-directory -j$(JOBS) all $(UNIT_BIN) $(CONF_BIN)
	$(Q)B=$(B) tests/run.sh vm

NIC ?= igb
KERNEL ?= new

vm-run: deps-vm ## one guest test: TEST=smoke NIC="igb virtio:4" KERNEL=new|6.12|6.1
	$(Q)$(MAKE) --no-print-directory -j$(JOBS) all $(UNIT_BIN) $(CONF_BIN)
	$(Q)B=$(B) tests/vm/lab run -k $(KERNEL) $(NIC:%=-n %) $(TEST)

vm-shell: deps-vm ## a shell in the guest: NIC=igb KERNEL=new|6.12|6.1
	$(Q)$(MAKE) --no-print-directory -j$(JOBS) all $(UNIT_BIN) $(CONF_BIN)
	$(Q)B=$(B) tests/vm/lab shell -k $(KERNEL) $(NIC)

check-long: deps-vm ## the loops of hundreds too, and all NICs and kernels in virtual machines
	$(Q)$(MAKE) --no-print-directory -j$(JOBS) all $(UNIT_BIN) $(BENCH_BIN) $(CONF_BIN)
	$(Q)B=$(B) LONG=1 tests/run.sh unit netns conf vm

FUZZ_BIN := $(FUZZ_SRC:%.c=$(B)/%)
FUZZ_SECONDS ?= 20

$(B)/tests/fuzz/%: $(B)/tests/fuzz/%.o $(B)/libxdpath.a
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_LDFLAGS) -fsanitize=fuzzer -o $@ $^ $$($(PKG_CONFIG) --libs $(LIB_LIBS))

# Each for FUZZ_SECONDS, from its corpus of earlier runs; what it crashed on is left beside that.
.PHONY: fuzz fuzz-run
fuzz: ## parsers under libFuzzer and ASan; FUZZ_SECONDS=20 each
	$(Q)$(MAKE) --no-print-directory -j$(JOBS) B=build/fuzz CC=clang SAN=address,undefined \
		CFLAGS='-O1 -g -fsanitize=fuzzer-no-link' fuzz-run

fuzz-run: $(FUZZ_BIN)
	$(Q)for f in $(FUZZ_BIN); do echo "$$f"; mkdir -p $$f.corpus; setarch -R $$f -verbosity=0 -print_final_stats=1 \
		-max_len=4096 -max_total_time=$(FUZZ_SECONDS) -artifact_prefix=$$f- $$f.corpus || exit 1; done

ci: ## what .ci/run does: check, the same under ASan and UBSan, lint
	$(Q)tests/ci.sh

demo: deps ## install, build, carry real traffic through `xdpath forward` over veth (as root)
	$(Q)$(MAKE) --no-print-directory -j$(JOBS) all
	$(Q)B=$(B) tools/demo.sh

bench: all $(BENCH_BIN) ## cycles per packet, and forward under backlog (as root)
	$(Q)B=$(B) tests/bench/run.sh

experiments: all ## the seeds' tables on this machine, in short form (as root)
	$(Q)B=$(B) tests/bench/experiments.sh >$(B)/experiments.md || { cat $(B)/experiments.md; exit 1; }
	$(Q)cat $(B)/experiments.md

# ---- the rest -------------------------------------------------------------------------------------

install: all ## into PREFIX (/usr/local), under DESTDIR
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(LIBDIR)/pkgconfig $(DESTDIR)$(PREFIX)/lib/bpf \
		$(DESTDIR)$(PREFIX)/include/xdpath
	install -m 755 $(B)/xdpath tools/xdpath-lab $(DESTDIR)$(PREFIX)/bin/
	install -m 644 $(B)/libxdpath.a $(DESTDIR)$(LIBDIR)/
	install -m 755 $(B)/libxdpath.so $(DESTDIR)$(LIBDIR)/libxdpath.so.$(VERSION)
	ln -sf libxdpath.so.$(VERSION) $(DESTDIR)$(LIBDIR)/libxdpath.so.$(SOVERSION)
	ln -sf libxdpath.so.$(SOVERSION) $(DESTDIR)$(LIBDIR)/libxdpath.so
	$(pc) > $(DESTDIR)$(LIBDIR)/pkgconfig/xdpath.pc # this PREFIX may not be the build's
	install -m 644 $(HEADERS) $(DESTDIR)$(PREFIX)/include/xdpath/
	install -m 644 $(B)/bpf/xdpath_steer.bpf.o $(DESTDIR)$(PREFIX)/lib/bpf/

uninstall: ## what install put there
	rm -f $(DESTDIR)$(PREFIX)/bin/xdpath $(DESTDIR)$(PREFIX)/bin/xdpath-lab \
		$(DESTDIR)$(LIBDIR)/libxdpath.a $(DESTDIR)$(LIBDIR)/libxdpath.so $(DESTDIR)$(LIBDIR)/libxdpath.so.$(SOVERSION) \
		$(DESTDIR)$(LIBDIR)/libxdpath.so.$(VERSION) $(DESTDIR)$(LIBDIR)/pkgconfig/xdpath.pc \
		$(DESTDIR)$(PREFIX)/lib/bpf/xdpath_steer.bpf.o
	rm -rf $(DESTDIR)$(PREFIX)/include/xdpath

C_FILES = $(HEADERS) $(wildcard user/lib/*.[ch] user/cmd/*.[ch] user/bench/*.[ch] bpf/*.[ch] tests/unit/*.[ch] tests/conf/*.[ch] tests/bench/*.[ch] tests/fuzz/*.c docs/examples/*.c)
SH_FILES = $(wildcard tools/*.sh tools/xdpath-lab tests/*.sh tests/netns/*.sh tests/bench/*.sh tests/vm/*.sh tests/vm/lab tests/vm/init .ci/run)

fmt: ## clang-format in place
	$(Q)clang-format -i $(C_FILES)

lint: deps-lint $(SKEL) ## clang-format, clang-tidy, cppcheck, shellcheck: clean, or it fails
	$(Q)clang-format --dry-run -Werror $(C_FILES)
	$(Q)shellcheck -x $(SH_FILES)
	$(Q)printf '%s\n' $(LIB_SRC) $(CMD_SRC) | xargs -P 2 -n 4 sh -c 'clang-tidy --quiet "$$@" -- \
		-D_GNU_SOURCE -Iinclude -Iuser/lib -Iuser/bench -isystem $(B)/skel -std=gnu11 -pthread 2>/dev/null' tidy
	$(Q)cppcheck --quiet --error-exitcode=1 --inline-suppr --enable=warning,performance,portability \
		--suppress=missingIncludeSystem -Iinclude -Iuser/lib -Iuser/bench user/lib user/cmd user/bench

clean: ## remove build/
	rm -rf build

-include $(shell find $(B) -path $(B)/vm -prune -o -name '*.d' -type f -print 2>/dev/null)
