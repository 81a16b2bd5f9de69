/* Switches, limits, descriptions and attributes: what programs set must come back; what can't be done is refused by name. */
#include "acl/acl.h"
#include "acl/acl_dump.h"
#include "acl/acl_op_compiler.h"
#include "acl/acl_prof.h"
#include "acl/acl_tdt.h"
#include "check.h"
#include "hccl/hccl.h"
#include "profiling/aprof_pub.h"
#include "runtime/rt.h"
#include "securec.h"

static void options(void)
{
    char text[32];
    int64_t value;
    CHECK_INT(aclGetCompileoptSize(ACL_OP_JIT_COMPILE), 8);
    CHECK_OK(aclGetCompileopt(ACL_OP_JIT_COMPILE, text, sizeof text));
    CHECK(strcmp(text, "disable") == 0, "%s", text);
    CHECK_OK(aclSetCompileopt(ACL_PRECISION_MODE, "must_keep_origin_dtype"));
    CHECK_INT(aclGetCompileoptSize(ACL_PRECISION_MODE), 23);
    CHECK_FAILS(aclGetCompileopt(ACL_PRECISION_MODE, text, 22), ACL_ERROR_INVALID_PARAM, "takes 23 bytes");
    CHECK_OK(aclGetCompileopt(ACL_PRECISION_MODE, text, 23));
    CHECK(strcmp(text, "must_keep_origin_dtype") == 0, "%s", text);
    CHECK_FAILS(aclSetCompileopt((aclCompileOpt)17, "x"), ACL_ERROR_INVALID_PARAM, "opt is 17");
    CHECK_INT(aclGetCompileoptSize((aclCompileOpt)17), 0);

    CHECK_OK(aclrtSetSysParamOpt(ACL_OPT_DETERMINISTIC, 1));
    CHECK_OK(aclrtGetSysParamOpt(ACL_OPT_DETERMINISTIC, &value));
    CHECK_INT(value, 1);
    CHECK_OK(aclrtCtxGetSysParamOpt(ACL_OPT_DETERMINISTIC, &value));
    CHECK_INT(value, 0);
    CHECK_OK(aclrtCtxSetSysParamOpt(ACL_OPT_STRONG_CONSISTENCY, 7));
    CHECK_OK(aclrtCtxGetSysParamOpt(ACL_OPT_STRONG_CONSISTENCY, &value));
    CHECK_INT(value, 7);
    CHECK_FAILS(aclrtSetSysParamOpt((aclSysParamOpt)3, 0), ACL_ERROR_INVALID_PARAM, "opt is 3");
    CHECK_INT(HcclSetConfig(HCCL_DETERMINISTIC, (HcclConfigValue){1}), HCCL_SUCCESS);
    CHECK_FAILS(HcclSetConfig(HCCL_DETERMINISTIC, (HcclConfigValue){3}), HCCL_E_PARA, "value 3");
}

static void limits(void)
{
    aclrtStream stream, dead;
    uint32_t cores;
    CHECK_OK(aclrtCreateStream(&stream));
    CHECK_OK(aclrtGetDeviceResLimit(0, ACL_RT_DEV_RES_VECTOR_CORE, &cores));
    CHECK_INT(cores, 48);
    CHECK_OK(aclrtSetDeviceResLimit(0, ACL_RT_DEV_RES_VECTOR_CORE, 20));
    CHECK_OK(aclrtGetStreamResLimit(stream, ACL_RT_DEV_RES_VECTOR_CORE, &cores));
    CHECK_INT(cores, 20);
    CHECK_OK(aclrtSetStreamResLimit(stream, ACL_RT_DEV_RES_VECTOR_CORE, 10));
    CHECK_OK(aclrtGetResInCurrentThread(ACL_RT_DEV_RES_VECTOR_CORE, &cores));
    CHECK_INT(cores, 20);
    CHECK_OK(aclrtUseStreamResInCurrentThread(stream));
    CHECK_OK(aclrtGetResInCurrentThread(ACL_RT_DEV_RES_VECTOR_CORE, &cores));
    CHECK_INT(cores, 10);
    CHECK_OK(aclrtUnuseStreamResInCurrentThread(stream));
    CHECK_OK(aclrtResetStreamResLimit(stream));
    CHECK_OK(aclrtResetDeviceResLimit(0));
    CHECK_OK(aclrtGetStreamResLimit(stream, ACL_RT_DEV_RES_VECTOR_CORE, &cores));
    CHECK_INT(cores, 48);
    CHECK_FAILS(aclrtSetDeviceResLimit(0, ACL_RT_DEV_RES_CUBE_CORE, 25), ACL_ERROR_INVALID_PARAM, "24 of these cores");
    CHECK_FAILS(aclrtSetDeviceResLimit(0, (aclrtDevResLimitType)2, 1), ACL_ERROR_INVALID_PARAM, "type is 2");
    CHECK_OK(aclrtUseStreamResInCurrentThread(stream));
    CHECK_OK(aclrtDestroyStream(stream));
    dead = stream;
    CHECK_FAILS(aclrtGetResInCurrentThread(ACL_RT_DEV_RES_CUBE_CORE, &cores), ACL_ERROR_RT_INVALID_HANDLE, "no stream");
    CHECK_FAILS(aclrtSetStreamResLimit(dead, ACL_RT_DEV_RES_CUBE_CORE, 1), ACL_ERROR_RT_INVALID_HANDLE, "no stream");
}

static void streams(void)
{
    aclrtStream first, second;
    int32_t a, b;
    uint32_t flag = 9;
    aclmdlRICaptureStatus status = ACL_MODEL_RI_CAPTURE_STATUS_ACTIVE;
    aclmdlRI model = &a;
    aclrtStreamAttrValue value = {.failureMode = 1};
    uint64_t actual;
    CHECK_OK(aclrtCreateStream(&first));
    CHECK_OK(aclrtCreateStream(&second));
    CHECK_OK(aclrtStreamGetId(first, &a));
    CHECK_OK(aclrtStreamGetId(second, &b));
    CHECK(a != b, "both are %d", a);
    CHECK_OK(aclrtSetStreamOverflowSwitch(first, 0));
    CHECK_FAILS(aclrtSetStreamOverflowSwitch(first, 1), ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "infinities");
    CHECK_OK(aclrtGetStreamOverflowSwitch(first, &flag));
    CHECK_INT(flag, 0);
    CHECK_OK(aclrtSetStreamAttribute(first, ACL_STREAM_ATTR_FAILURE_MODE, &value));
    CHECK_FAILS(aclrtSetStreamAttribute(first, ACL_STREAM_ATTR_CACHE_OP_INFO, &value), ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
                "attribute 4");
    CHECK_FAILS(aclrtSetStreamFailureMode(first, 2), ACL_ERROR_INVALID_PARAM, "mode is 2");
    CHECK_OK(aclmdlRICaptureGetInfo(first, &status, &model));
    CHECK(status == ACL_MODEL_RI_CAPTURE_STATUS_NONE && !model, "%d %p", (int)status, model);
    CHECK_OK(aclrtSetOpExecuteTimeOutV2(1868000000, &actual));
    CHECK_INT(actual, 1868000000);
    CHECK_OK(aclrtSetOpExecuteTimeOut(0));
    CHECK_OK(aclrtDestroyStream(first));
    CHECK_OK(aclrtDestroyStream(second));
}

static void descriptions(void)
{
    const int64_t dims[] = {2, 3, 4}, unknown[] = {2, -1}, ones[] = {1, 2}, many[33] = {0};
    const int64_t *const lists[] = {ones, dims};
    const int lengths[] = {2, 3};
    const uint8_t flags[] = {1, 0};
    const float numbers[] = {0.5F, 2};
    int64_t size;
    char word[] = "word";
    aclTensorDesc *const desc = aclCreateTensorDesc(ACL_FLOAT16, 3, dims, ACL_FORMAT_ND);
    CHECK_INT(aclGetTensorDescNumDims(desc), 3);
    CHECK_OK(aclGetTensorDescDimV2(desc, 1, &size));
    CHECK_INT(size, 3);
    CHECK_FAILS(aclGetTensorDescDimV2(desc, 3, &size), ACL_ERROR_INVALID_PARAM, "index is 3");
    CHECK_INT(aclGetTensorDescElementCount(desc), 24);
    CHECK_INT(aclGetTensorDescSize(desc), 48);
    CHECK_INT(aclGetTensorDescType(desc), ACL_FLOAT16);
    aclSetTensorDescName(desc, word);
    word[0] = 'W';
    CHECK(strcmp(aclGetTensorDescName(desc), "word") == 0, "%s", aclGetTensorDescName(desc));
    CHECK_OK(aclSetTensorShape(desc, 2, unknown));
    CHECK_OK(aclSetTensorFormat(desc, ACL_FORMAT_NCHW));
    CHECK_OK(aclSetTensorPlaceMent(desc, ACL_MEMTYPE_HOST));
    CHECK_FAILS(aclSetTensorPlaceMent(desc, (aclMemType)3), ACL_ERROR_INVALID_PARAM, "memType is 3");
    CHECK(aclGetTensorDescFormat(desc) == ACL_FORMAT_ND, "the operator's view isn't the storage's");
    CHECK(!aclCreateTensorDesc(ACL_FLOAT, 33, many, ACL_FORMAT_ND), "33 dimensions");
    aclDataBuffer *const buffer = aclCreateDataBuffer(word, 5);
    CHECK(aclGetDataBufferAddr(buffer) == word && aclGetDataBufferSizeV2(buffer) == 5, "the buffer forgot");

    aclopAttr *const attributes = aclopCreateAttr();
    CHECK_OK(aclopSetAttrInt(attributes, "axis", 3));
    CHECK_OK(aclopSetAttrBool(attributes, "keep", 1));
    CHECK_OK(aclopSetAttrString(attributes, "mode", "iou"));
    CHECK_OK(aclopSetAttrListInt(attributes, "pads", 3, dims));
    CHECK_OK(aclopSetAttrListBool(attributes, "flags", 2, flags));
    CHECK_OK(aclopSetAttrListFloat(attributes, "scales", 2, numbers));
    CHECK_OK(aclopSetAttrListListInt(attributes, "lists", 2, lengths, lists));
    CHECK_OK(aclopSetAttrDataType(attributes, "type", ACL_BF16));
    CHECK_OK(aclopSetAttrFloat(attributes, "eps", 0.25F));
    CHECK_OK(aclopSetAttrInt(attributes, "axis", 1));
    CHECK_FAILS(aclopSetAttrListInt(attributes, "pads", 2, NULL), ACL_ERROR_INVALID_PARAM, "pads");
    CHECK_FAILS(aclopSetAttrListListInt(attributes, "lists", -1, lengths, lists), ACL_ERROR_INVALID_PARAM, "-1 lists");
    CHECK_FAILS(aclopSetAttrInt(NULL, "axis", 1), ACL_ERROR_INVALID_PARAM, "attr is null");
    const aclTensorDesc *const inputs[] = {desc};
    const char *const words =
        "Rotated(f16[2,3,4]) with axis=1, keep=true, mode=\"iou\", pads=[2,3,4], flags=[true,false], scales=[0.5,2], "
        "lists=[1,2,2,3,4], type=27, eps=0.25 isn't available";
    CHECK_FAILS(
        aclopCompileAndExecute("Rotated", 1, inputs, NULL, 0, NULL, NULL, attributes, ACL_ENGINE_SYS, ACL_COMPILE_SYS, NULL, NULL),
        ACL_ERROR_OP_NOT_FOUND, words);
    aclopDestroyAttr(attributes);
    CHECK_OK(aclDestroyDataBuffer(buffer));
    aclDestroyTensorDesc(desc);
}

static void refusals(void)
{
    uint64_t address;
    uint32_t length;
    aclrtErrorInfo error;
    aclrtMemUceInfo faults[1];
    size_t found = 9;
    CHECK_FAILS(aclmdlRIDestroy(NULL), ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "aclmdlRIDestroy: not available on the software NPU");
    CHECK_FAILS(rtGetC2cCtrlAddr(&address, &length), ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "rtGetC2cCtrlAddr");
    CHECK_FAILS(HcclAllReduce(NULL, NULL, 0, HCCL_DATA_TYPE_FP32, HCCL_REDUCE_SUM, NULL, NULL), HCCL_E_NOT_SUPPORT,
                "HcclAllReduce");
    CHECK_FAILS(aclopStartDumpArgs(1, "x"), ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "aclopStartDumpArgs");
    CHECK_FAILS(aclprofInit("x", 1), ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "profiler");
    CHECK_FAILS(acltdtCreateDataset() ? 0 : 1, 1, "acltdtCreateDataset");
    CHECK_OK(aclrtGetErrorVerbose(0, &error));
    CHECK_INT(error.errorType, ACL_RT_NO_ERROR);
    CHECK_OK(aclrtGetMemUceInfo(0, faults, 1, &found));
    CHECK_INT(found, 0);
    CHECK(MsprofGetHashId("abc", 3) == MsprofGetHashId("abcd", 3) && MsprofGetHashId("abc", 3) != MsprofGetHashId("abd", 3),
          "hashes");
}

static void strings(void)
{
    char text[8] = "before";
    CHECK_INT(strcpy_s(text, sizeof text, "1234567"), EOK);
    CHECK_INT(strcpy_s(text, sizeof text, "12345678"), ERANGE_AND_RESET);
    CHECK(text[0] == '\0', "%s", text);
    CHECK_INT(strcpy_s(NULL, 1, "x"), EINVAL_AND_RESET);
    CHECK_INT(snprintf_s(text, sizeof text, sizeof text - 1, "%d-%s", 12, "ab"), 5);
    CHECK(strcmp(text, "12-ab") == 0, "%s", text);
    CHECK_INT(snprintf_s(text, sizeof text, 3, "%s", "abcdef"), -1);
    CHECK(strcmp(text, "abc") == 0, "%s", text);
    CHECK_INT(snprintf_s(text, sizeof text, 100, "%s", "abcdefghi"), -1);
    CHECK(text[0] == '\0', "%s", text);
}

int main(void)
{
    setenv("ASCEND_SOC", "Ascend910B2", 1);
    CHECK_OK(aclInit(NULL));
    CHECK_OK(aclrtSetDevice(0));
    options();
    limits();
    streams();
    descriptions();
    refusals();
    strings();
    CHECK_OK(aclFinalize());
    return check_result();
}
