/* SPDX-License-Identifier: MIT */
#ifndef FAKECUDA_LACK_H
#define FAKECUDA_LACK_H

/* A client wants what this driver does not have: a line in the file FAKECUDA_LACKS, or stderr. */
void fk_lack(const char *what, const char *name);

#endif
