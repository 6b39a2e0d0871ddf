-- Notes how far a lane is applied to some buckets, each under the life of this server: another run, or another line of
-- replication, is another life, and may know less. KEYS: the buckets' notes. ARGV: the lane, the position (empty: none), and
-- how: '' as it is, 'adopt' also where there is no note, 'accept' the notes of other lives for this one, and nothing else.
-- Gives for each bucket: '' all is well, '?' nothing is known of it, or the position up to which another life had applied
-- the lane.
local lane, position, how = ARGV[1], ARGV[2], ARGV[3]
local life = string.match(redis.call('INFO', 'server'), 'run_id:(%x+)')
  .. string.match(redis.call('INFO', 'replication'), 'master_replid:(%x+)')
local answers = {}
for place, note in ipairs(KEYS) do
  local known = redis.call('HGET', note, lane)
  local answer = ''
  if known then
    local of_life, applied = string.match(known, '^(%x+) (%-?%d+)$')
    if of_life ~= life then
      answer = applied
      if how == 'accept' then
        redis.call('HSET', note, lane, life .. ' ' .. applied)
      end
    elseif position ~= '' then
      redis.call('HSET', note, lane, life .. ' ' .. position)
    end
  elseif position ~= '' then
    if how == 'adopt' or redis.call('EXISTS', note) == 1 then
      redis.call('HSET', note, lane, life .. ' ' .. position)
    else
      answer = '?'
    end
  end
  answers[place] = answer
end
return answers
