-- Adds an entry to those of the readers' homes that exist, and tells who is connected where.
-- ARGV: not after (ms), score, member, members at the most, members kept by a cut; then for each bucket how many readers,
-- and the readers. KEYS: for each bucket its online hash, and the readers' homes.
-- Returns reader, pod, reader, pod…; false when it is too late.
local not_after, score, member, max, kept = tonumber(ARGV[1]), ARGV[2], ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5])
local now = now_ms()
if now > not_after then
  return false
end

-- An entry below the coverage is added all the same: to look at every sentinel would cost more than the add. Pages
-- leave out what lies below the coverage, and the next cut takes it away.
local function push(home)
  local members = redis.call('ZCARD', home)
  if members == 0 then
    return
  end
  if members >= max then
    local sentinel = sentinel_of(home)
    if not sentinel then
      redis.call('DEL', home)
      return
    end
    cut(home, sentinel, kept)
  end
  redis.call('ZADD', home, score, member)
end

local told = {}
local function tell(online, reader, packed)
  local connections, pods = live(packed, now), {}
  for _, connection in ipairs(connections) do
    local pod = connection[2]
    if not pods[pod] then
      pods[pod] = true
      told[#told + 1] = reader
      told[#told + 1] = pod
    end
  end
  if #connections == 0 then
    -- Its pod died without a word: nobody else would ever take it away.
    redis.call('HDEL', online, reader)
  end
end

local key, argument = 1, 6
while key <= #KEYS do
  local online, readers = KEYS[key], tonumber(ARGV[argument])
  local found = redis.call('HMGET', online, unpack(ARGV, argument + 1, argument + readers))
  for at = 1, readers do
    push(KEYS[key + at])
    if found[at] then
      tell(online, ARGV[argument + at], found[at])
    end
  end
  key, argument = key + 1 + readers, argument + 1 + readers
end
return told
