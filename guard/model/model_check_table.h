// The checks of whole models, by name.
#ifndef ATTNGUARD_GUARD_MODEL_MODEL_CHECK_TABLE_H_
#define ATTNGUARD_GUARD_MODEL_MODEL_CHECK_TABLE_H_

#include "guard/model/model_check.h"

namespace attnguard {

extern const ModelCheckInfo kModelFinite;
extern const ModelCheckInfo kModelRepeatable;
extern const ModelCheckInfo kModelFuture;
extern const ModelCheckInfo kModelPrefix;
extern const ModelCheckInfo kModelIncremental;
extern const ModelCheckInfo kModelBatch;
extern const ModelCheckInfo kModelReuse;
extern const ModelCheckInfo kModelLossGap;

}  // namespace attnguard

#endif  // ATTNGUARD_GUARD_MODEL_MODEL_CHECK_TABLE_H_
