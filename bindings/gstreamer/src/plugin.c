// SPDX-License-Identifier: MIT
/* The entry of the plugin. */
#include "xmemgst.h"

GST_DEBUG_CATEGORY(xg_debug);
GST_DEBUG_CATEGORY(xg_performance);

static gboolean init(GstPlugin *plugin)
{
	GST_DEBUG_CATEGORY_INIT(xg_debug, "xmem", 0, "Buffers that are shared by xmem");
	GST_DEBUG_CATEGORY_GET(xg_performance, "GST_PERFORMANCE");
	return gst_element_register(plugin, "xmemsink", GST_RANK_NONE, xg_sink_get_type()) &&
	       gst_element_register(plugin, "xmemsrc", GST_RANK_NONE, xg_src_get_type());
}

#define PACKAGE "xmem"
GST_PLUGIN_DEFINE(GST_VERSION_MAJOR, GST_VERSION_MINOR, xmem,
		  "Shares buffers with other processes by xmem, without copies", init,
		  XMEM_VERSION, "MIT/X11", PACKAGE, PACKAGE)
