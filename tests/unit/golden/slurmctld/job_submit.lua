--
-- Ansible managed
--
-- Refuses jobs without an image where one is demanded, and bundles of users. slurmctld calls it for each job.
local partitions = {
    ["course"] = true,
}
local accounts = {
    ["students"] = true,
}
local tester = "alice"
local images = "/share/images"

local function default_partition(list)
    for name, partition in pairs(list) do
        if partition.flag_default == 1 then
            return name
        end
    end
    return ""
end

local function is_image(path)
    local directory, name = string.match(path, "^(.*)/([^/]+)/*$")
    return directory == images and name ~= "." and name ~= ".."
end

local function check(partition, account, container)
    if container ~= nil and container ~= "" then
        if is_image(container) then
            return slurm.SUCCESS
        end
        slurm.log_user("%s is not an image. The images are the directories of %s.", container, images)
        return slurm.ERROR
    end
    for name in string.gmatch(partition, "[^,]+") do
        if partitions[name] then
            slurm.log_user("partition %s: jobs run in images only. Add --container=%s/NAME.", name, images)
            return slurm.ERROR
        end
    end
    -- Slurm finds an account whatever the case of its name.
    if account ~= nil and accounts[string.lower(account)] then
        slurm.log_user("account %s: jobs run in images only. Add --container=%s/NAME.", account, images)
        return slurm.ERROR
    end
    return slurm.SUCCESS
end

-- `stead smoke` and `stead quiet measure` test the machines, not images.
local function is_test(job)
    local kind = string.match(job.name or "", "^(%a+)%-")
    return job.user_name == tester and (kind == "smoke" or kind == "quiet")
end

function slurm_job_submit(job, list, user)
    if is_test(job) then
        return slurm.SUCCESS
    end
    local partition = job.partition or default_partition(list)
    return check(partition, job.account or job.default_account, job.container)
end

function slurm_job_modify(job, record, list, user)
    -- The job stays where it is, or an administrator moves it.
    if user == 0 or (job.partition == nil and job.account == nil) then
        return slurm.SUCCESS
    end
    return check(job.partition or record.partition, job.account or record.account, record.container)
end

return slurm.SUCCESS
