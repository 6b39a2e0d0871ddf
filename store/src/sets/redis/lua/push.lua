-- Adds entries to those of the readers' homes that exist, and tells who is connected where.
-- ARGV: not after (ms), members at the most, members kept by a cut; then for each bucket how many readers, the readers, and for
-- each of them how many entries, and their scores and members. KEYS: for each bucket its online hash, and the readers' homes.
-- Returns reader, pod, reader, pod…; false when it is too late.
local not_after, max, kept = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local now = now_ms()
if now > not_after then
  return false
end

-- Adds what stands from ARGV[first] to ARGV[last], as many at once as there is room for.
-- An entry below the coverage is added all the same: to look at every sentinel would cost more than the add. Pages
-- leave out what lies below the coverage, and the next cut takes it away.
local function push(home, first, last)
  local members = redis.call('ZCARD', home)
  if members == 0 then
    return
  end
  while first <= last do
    if members >= max then
      local sentinel = sentinel_of(home)
      if not sentinel then
        redis.call('DEL', home)
        return
      end
      cut(home, sentinel, kept)
      members = kept
    end
    local behind = math.min(last + 1, first + 2 * (max - members))
    members = members + redis.call('ZADD', home, unpack(ARGV, first, behind - 1))
    first = behind
  end
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

local key, at = 1, 4
while key <= #KEYS do
  local online, readers = KEYS[key], tonumber(ARGV[at])
  local found = redis.call('HMGET', online, unpack(ARGV, at + 1, at + readers))
  local entries = at + 1 + readers
  for place = 1, readers do
    local behind = entries + 1 + 2 * ARGV[entries]
    push(KEYS[key + place], entries + 1, behind - 1)
    if found[place] then
      tell(online, ARGV[at + place], found[place])
    end
    entries = behind
  end
  key, at = key + 1 + readers, entries
end
return told
