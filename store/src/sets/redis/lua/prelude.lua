-- What the scripts share. Numbers of 8 bytes are compared by halves: a Lua number is exact to 2^53 only, and comparing
-- strings would go by the server's locale.

local function now_ms()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

local function is_below(a, b)
  local a_high, a_low = struct.unpack('>I4I4', a)
  local b_high, b_low = struct.unpack('>I4I4', b)
  return a_high < b_high or (a_high == b_high and a_low < b_low)
end

-- The id of an entry, whose member begins with it, inverted.
local function id_of(member)
  local high, low = struct.unpack('>I4I4', member)
  return struct.pack('>I4I4', 0x7FFFFFFF - high, 0xFFFFFFFF - low)
end

-- A home's sentinel in parts; nil where there is no home, or something that is none.
local function sentinel_of(home)
  local last = redis.call('ZRANGE', home, -1, -1)[1]
  if last and #last == 18 and string.byte(last) == 0xFF then
    return {
      member = last, state = string.byte(last, 2), token = string.sub(last, 3, 10), coverage = string.sub(last, 11, 18),
    }
  end
end

local function put_sentinel(home, sentinel)
  sentinel.member = string.char(0xFF, sentinel.state) .. sentinel.token .. sentinel.coverage
  redis.call('ZADD', home, '+inf', sentinel.member)
end

-- The coverage never falls: what lies below it may be missing.
local function raise_coverage(sentinel, coverage)
  if is_below(sentinel.coverage, coverage) then
    sentinel.coverage = coverage
  end
end

-- Cuts a full home to `kept` members, the sentinel included, whose coverage rises with the cut.
local function cut(home, sentinel, kept)
  redis.call('ZREMRANGEBYRANK', home, kept - 1, -1)
  raise_coverage(sentinel, id_of(redis.call('ZRANGE', home, -1, -1)[1]))
  put_sentinel(home, sentinel)
end

-- Adds entries, given as scores and members from ARGV[first] on, to a home; none below the coverage, where pages come
-- from the archive. The home never has more than `max` members, not even for a moment.
local function add_entries(home, sentinel, first, max, kept)
  local members = redis.call('ZCARD', home)
  for at = first, #ARGV, 2 do
    local score, member = ARGV[at], ARGV[at + 1]
    if members >= max then
      cut(home, sentinel, kept)
      members = kept
    end
    if not is_below(id_of(member), sentinel.coverage) then
      members = members + redis.call('ZADD', home, score, member)
    end
  end
end

-- Sets what an author is to a reader, unless a state that is as new is there. A value begins with its version.
local function set_state(authors, field, value)
  local known = redis.call('HGET', authors, field)
  if not known or is_below(known, value) then
    redis.call('HSET', authors, field, value)
  end
end

-- Forgets which authors were followed before this moment, where many are remembered: that is kept for as long as a write
-- that says "unfollowed" could be under way.
local function forget_follows(authors, before_ms)
  if redis.call('HLEN', authors) < 64 then
    return
  end
  local all = redis.call('HGETALL', authors)
  for at = 1, #all, 2 do
    local field, value = all[at], all[at + 1]
    if #field == 9 and string.sub(field, 1, 1) == 'u' and string.sub(value, 9) == string.rep('\0', 8) then
      local high, low = struct.unpack('>I4I4', value)
      -- A version is in microseconds, far below 2^53.
      if (high * 4294967296 + low) / 1000 < before_ms then
        redis.call('HDEL', authors, field)
      end
    end
  end
end

-- A reader's connections that have not run out, each {id, pod, runs out at, made in which round}.
local function live(packed, now)
  local connections = {}
  if packed then
    for _, connection in ipairs(cmsgpack.unpack(packed)) do
      if connection[3] > now then
        connections[#connections + 1] = connection
      end
    end
  end
  return connections
end
