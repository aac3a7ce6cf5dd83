/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/* Everything, in reading order. */
#ifndef XDPATH_XDPATH_H
#define XDPATH_XDPATH_H

#include <xdpath/base.h>
#include <xdpath/ring.h>
#include <xdpath/frame.h>
#include <xdpath/pkt.h>
#include <xdpath/umem.h>
#include <xdpath/port.h>
#include <xdpath/prog.h>
#include <xdpath/rule.h>
#include <xdpath/steer.h>
#include <xdpath/socket.h>
#include <xdpath/knob.h>
#include <xdpath/poller.h>
#include <xdpath/datapath.h>

#endif
