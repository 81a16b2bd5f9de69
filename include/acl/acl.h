/* The runtime's umbrella header (CANN: acl/acl.h). */
#ifndef ACL_ACL_H
#define ACL_ACL_H

#include "acl/acl_base.h"
#include "acl/acl_rt.h"
#include "acl/acl_op.h"

#endif
